// The scalar decoders against the gguf package, and the half conversions against their definition.
#include "kernels/quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace unisono::kernels {
namespace {

Json golden() {
  std::ifstream file(UNISONO_GOLDEN_DIR "/kernels/quant.json");
  std::stringstream text;
  text << file.rdbuf();
  auto json = parse_json(text.str());
  if (!json.ok()) throw std::runtime_error(json.error().message);
  return *json;
}

std::string fnv1a(const void* data, size_t bytes) {
  uint64_t digest = 0xCBF29CE484222325;
  for (size_t i = 0; i < bytes; i++) digest = (digest ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::optional<DType> type_named(std::string_view name) {
  for (int i = 0; i < kDTypes; i++) {
    if (info(static_cast<DType>(i)).name == name) return static_cast<DType>(i);
  }
  return {};
}

TEST(Quant, EveryTypeDecodesToTheBitsOfTheGgufPackage) {
  const Json json = golden();
  const JsonArray& rows = json.at("rows").as_array();
  ASSERT_EQ(rows.size(), static_cast<size_t>(kDTypes));
  for (const Json& row : rows) {
    const std::string_view name = row.at("type").as_string();
    SCOPED_TRACE(name);
    const auto type = type_named(name);
    ASSERT_TRUE(type.has_value());
    const std::vector<std::byte> bytes = from_hex(row.at("row").as_string());
    const int64_t n = row.at("elements").to_number<int64_t>();
    ASSERT_EQ(bytes.size(), static_cast<size_t>(n / info(*type).block_elems * info(*type).block_bytes));
    // One byte off: rows need no alignment.
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
    std::vector<float> out(static_cast<size_t>(n));
    dequantise_row(*type, shifted.data() + 1, n, out.data());
    const auto every = row.at("every").to_number<size_t>();
    size_t at = 0;
    for (const Json& first : row.at("first").as_array()) {
      char text[9];
      std::snprintf(text, sizeof text, "%08x", std::bit_cast<uint32_t>(out[at]));
      EXPECT_EQ(std::string_view(text), std::string_view(first.as_string())) << "element " << at;
      at += every;
    }
    EXPECT_EQ(fnv1a(out.data(), out.size() * sizeof(float)), std::string_view(row.at("digest").as_string()));
  }
}

TEST(Quant, AllHalvesWidenAsNumpyDoes) {
  std::vector<float> all(65536);
  for (uint32_t h = 0; h < 65536; h++) all[h] = half_to_float(static_cast<uint16_t>(h));
  EXPECT_EQ(fnv1a(all.data(), all.size() * sizeof(float)),
            std::string_view(golden().at("halves").at("all_halves_digest").as_string()));
}

TEST(Quant, FloatsNarrowAsNumpyDoes) {
  std::vector<uint16_t> narrowed(1 << 17);
  for (uint32_t i = 0; i < narrowed.size(); i++) {
    const float value = std::bit_cast<float>(i * 0x9E3779B1u);
    narrowed[i] = float_to_half(value);
    if (!std::isnan(value)) continue;
    ASSERT_GT(narrowed[i] & 0x7FFF, 0x7C00);
    narrowed[i] = (narrowed[i] & 0x8000) | 0x7E00;
  }
  EXPECT_EQ(fnv1a(narrowed.data(), narrowed.size() * sizeof(uint16_t)),
            std::string_view(golden().at("halves").at("floats_digest").as_string()));
}

TEST(Quant, NarrowingTakesTheNearestHalfAndTheEvenOneOfTwo) {
  for (uint32_t h = 0; h < 0x7C00; h++) {
    const auto half = static_cast<uint16_t>(h);
    const float value = half_to_float(half);
    ASSERT_EQ(float_to_half(value), half);
    ASSERT_EQ(float_to_half(-value), half | 0x8000);
    // The next half above; 65536 where that is infinity, as rounding has no upper end.
    const float above = h == 0x7BFF ? 65536.0f : half_to_float(static_cast<uint16_t>(h + 1));
    const float middle = value + (above - value) / 2;  // exact: two more bits than a half has
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), h) << h;
    ASSERT_EQ(float_to_half(middle), h + (h & 1)) << h;
    ASSERT_EQ(float_to_half(std::nextafter(middle, INFINITY)), h + 1) << h;
  }
  EXPECT_EQ(float_to_half(INFINITY), 0x7C00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xFC00);
  EXPECT_EQ(float_to_half(std::bit_cast<float>(1u)), 0);
}

TEST(Quant, Bf16IsTheUpperHalfOfAFloat) {
  for (uint32_t b = 0; b < 65536; b++) {
    ASSERT_EQ(std::bit_cast<uint32_t>(bf16_to_float(static_cast<uint16_t>(b))), b << 16);
  }
}

#if defined(__x86_64__)
TEST(Quant, FlushingDenormalsChangesNothing) {
  const unsigned before = _mm_getcsr();
  std::vector<uint32_t> wide[2];
  std::vector<uint16_t> narrow[2];
  for (const unsigned mode : {0u, 0x8040u}) {
    _mm_setcsr(before | mode);
    for (uint32_t h = 0; h < 65536; h++) {
      const float value = half_to_float(static_cast<uint16_t>(h));
      wide[mode != 0].push_back(std::bit_cast<uint32_t>(value));
      narrow[mode != 0].push_back(float_to_half(value));
      narrow[mode != 0].push_back(float_to_half(bf16_to_float(static_cast<uint16_t>(h))));
    }
  }
  _mm_setcsr(before);
  EXPECT_EQ(wide[0], wide[1]);
  EXPECT_EQ(narrow[0], narrow[1]);
}
#endif

TEST(Quant, KScalesUnpackWhatWasPacked) {
  for (int round = 0; round < 64; round++) {
    uint8_t scales[8];
    uint8_t mins[8];
    for (int i = 0; i < 8; i++) {
      scales[i] = static_cast<uint8_t>((round * 7 + i * 13 + 5) % 64);
      mins[i] = static_cast<uint8_t>((round * 11 + i * 29 + 3) % 64);
    }
    uint8_t packed[12] = {};
    for (int i = 0; i < 4; i++) {
      packed[i] = static_cast<uint8_t>(scales[i] | (scales[i + 4] >> 4) << 6);
      packed[i + 4] = static_cast<uint8_t>(mins[i] | (mins[i + 4] >> 4) << 6);
      packed[i + 8] = static_cast<uint8_t>((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
    }
    uint8_t got_scales[8];
    uint8_t got_mins[8];
    unpack_k_scales(packed, got_scales, got_mins);
    EXPECT_EQ(std::memcmp(got_scales, scales, 8), 0);
    EXPECT_EQ(std::memcmp(got_mins, mins, 8), 0);
  }
}

}  // namespace
}  // namespace unisono::kernels
