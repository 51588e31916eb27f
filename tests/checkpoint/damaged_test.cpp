// Damaged and unsupported files: each is refused with a sentence, and none makes the reader take memory that its size
// doesn't justify.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "checkpoint/allocations.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"

namespace unisono::checkpoint {
namespace {

using testing::GgufBytes;
using testing::GgufWriter;

constexpr uint64_t k2e31 = uint64_t{1} << 31;
constexpr uint64_t k2e32 = uint64_t{1} << 32;
constexpr uint64_t k2e63 = uint64_t{1} << 63;
constexpr uint64_t kMax = ~uint64_t{0};

std::vector<std::byte> zeros(size_t n) { return std::vector<std::byte>(n); }

// Reads a file from memory that ends where it ends (for sanitizers), and holds the reader to its promise about memory.
Result<Checkpoint> parse_bounded(const std::vector<std::byte>& bytes) {
  const std::vector<std::byte> exact(bytes);
  const size_t before = testing::bytes_allocated();
  auto file = Checkpoint::parse(exact);
  EXPECT_LE(testing::bytes_allocated() - before, 16 * bytes.size() + 4096);
  if (!file.ok()) return file.error();
  return Checkpoint::parse(bytes);
}

void expect_sentence(const std::string& message) {
  EXPECT_GE(message.size(), 20u);
  EXPECT_LE(message.size(), 900u);
  EXPECT_TRUE(message.ends_with(".")) << message;
  EXPECT_TRUE(std::all_of(message.begin(), message.end(), [](char c) { return c >= 0x20 && c < 0x7F; })) << message;
}

// Whatever was accepted is sound: tensors lie in the file and apart, names are there once.
void expect_sound(const Checkpoint& file, const std::vector<std::byte>& bytes) {
  std::set<std::string_view> names;
  std::vector<std::pair<const std::byte*, const std::byte*>> places;
  for (const NamedTensor& tensor : file.tensors()) {
    EXPECT_TRUE(names.insert(tensor.name).second);
    EXPECT_EQ(file.find(tensor.name), &tensor.view);
    places.push_back({tensor.view.data, tensor.view.data + tensor.view.bytes()});
    EXPECT_GT(tensor.view.bytes(), 0u);
    EXPECT_GE(places.back().first, bytes.data());
    EXPECT_LE(places.back().second, bytes.data() + bytes.size());
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); i++) EXPECT_LE(places[i - 1].second, places[i].first);
  std::set<std::string_view> keys;
  for (const Entry& entry : file.metadata()) EXPECT_TRUE(keys.insert(entry.key).second);
}

// A small file with something of everything.
GgufBytes sample() {
  return GgufWriter()
      .align(32)
      .set("general.architecture", "llama")
      .set("a.u8", uint8_t{3})
      .set("a.f64", 0.5)
      .set("a.bool", true)
      .set("an.i32", std::vector<int32_t>{1, 2, 3})
      .set("an.u8", std::vector<uint8_t>{1, 2})
      .set("a.text", std::vector<std::string>{"one", "two"})
      .tensor("w", DType::f16, {2, 4}, zeros(16))
      .tensor("q", DType::q4_0, {1, 1, 2, 32}, zeros(36))
      .build();
}

std::vector<std::byte> patched(const GgufBytes& file, const GgufBytes::Field& field, uint64_t value) {
  std::vector<std::byte> bytes = file.bytes();
  std::memcpy(bytes.data() + field.at, &value, field.bytes);
  return bytes;
}

std::vector<std::byte> patched(const GgufBytes& file, const std::string& what, uint64_t value) {
  for (const auto& field : file.fields()) {
    if (field.what == what) return patched(file, field, value);
  }
  ADD_FAILURE() << "no field " << what;
  return {};
}

struct Case {
  std::vector<std::byte> file{};
  std::string message{};
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto file = parse_bounded(c.file);
    ASSERT_FALSE(file.ok()) << "accepted, where this was expected: " << c.message;
    EXPECT_EQ(file.error().message, c.message);
    expect_sentence(file.error().message);
  }
}

std::vector<std::byte> raw(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

TEST(Damaged, SampleIsSound) {
  const auto bytes = sample().bytes();
  const auto file = parse_bounded(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->metadata().size(), 8u);
}

TEST(Damaged, HeadersAreRefused) {
  const std::string no_gguf = "This is not a GGUF file: it doesn't begin with the letters GGUF.";
  const std::string cut = "The file ends within its header: it is cut short.";
  const auto file = sample();
  const std::string size = std::to_string(file.bytes().size());
  std::vector<Case> cases = {
      {{}, no_gguf},
      {raw("GGU"), no_gguf},
      {raw("GGML and more, enough for a header"), no_gguf},
      {raw("GGUF"), cut},
      {raw(std::string_view("GGUF\x03\0\0\0", 8)), cut},
      {raw(std::string_view("GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 19)), cut},
      {patched(file, "version", 0), "The file is GGUF version 0; versions 2 and 3 are supported: convert it again."},
      {patched(file, "version", 1), "The file is GGUF version 1; versions 2 and 3 are supported: convert it again."},
      {patched(file, "version", 4), "The file is GGUF version 4; versions 2 and 3 are supported: convert it again."},
      {patched(file, "version", 0x03000000),
       "The file is big-endian GGUF; only little-endian files are supported: convert it first."}};
  for (const uint64_t n : {k2e31, k2e32, k2e63, kMax, kMax / 13 + 1}) {
    cases.push_back({patched(file, "number of metadata keys", n),
                     "The header announces " + std::to_string(n) + " metadata keys, more than a file of " + size +
                         " bytes can hold: the file is cut short or damaged."});
    cases.push_back({patched(file, "number of tensors", n), "The header announces " + std::to_string(n) +
                                                                " tensors, more than a file of " + size +
                                                                " bytes can hold: the file is cut short or damaged."});
  }
  expect_refused(cases);
}

TEST(Damaged, MetadataAreRefused) {
  const auto file = sample();
  const std::string beyond = " reaches beyond the end of the file: the file is cut short or damaged.";
  std::vector<Case> cases = {
      {GgufWriter().set("", true).bytes(), "Metadata key 1 has no name: the file is damaged."},
      {GgufWriter().set("x", true).set("", true).bytes(), "Metadata key 2 has no name: the file is damaged."},
      {GgufWriter().set("x.y", true).set("z", true).set("x.y", 1.0).bytes(),
       "Key 'x.y' is there more than once: the file is damaged."},
      {patched(file, "type of a.u8", 13), "Key 'a.u8' has the unknown type 13."},
      {patched(file, "type of a.u8", 0xFFFFFFFF), "Key 'a.u8' has the unknown type 4294967295."},
      {patched(file, "element type of an.i32", 13), "Key 'an.i32' is an array of unknown type 13."},
      {patched(file, "element type of an.i32", k2e31), "Key 'an.i32' is an array of unknown type 2147483648."},
      {patched(file, "element type of an.i32", 9), "Key 'an.i32' is an array of arrays, which is not supported."},
      {patched(file, "value of a.bool", 2), "Key 'a.bool' holds a truth value of 2 where only 0 and 1 mean something."},
      {patched(file, "value of a.bool", 255), "Key 'a.bool' holds a truth value of 255 where only 0 and 1 mean something."},
      {patched(file, "element type of an.u8", 7),
       "Key 'an.u8' holds a truth value of 2 where only 0 and 1 mean something."},
      {GgufWriter().set(std::string("tab\t\xC3\xA9"), uint8_t{1}).set("tab\t\xC3\xA9", uint8_t{1}).bytes(),
       "Key 'tab\\x09\\xc3\\xa9' is there more than once: the file is damaged."},
      {GgufWriter().set(std::string(65536, 'k'), uint8_t{1}).bytes(),
       "Key '" + std::string(80, 'k') + "...' has a name of 65536 bytes, longer than the format's limit of 65535."},
      {GgufWriter().set("split.count", uint16_t{3}).bytes(),
       "Key 'split.count' says that this file is one of 3 parts of a model; models in several files are not supported: "
       "merge the parts into one file."},
      {GgufWriter().set("split.count", "3").bytes(), "Key 'split.count' is not a count of files."},
      {GgufWriter().set("split.count", int32_t{-1}).bytes(), "Key 'split.count' is not a count of files."},
  };
  for (const uint64_t n : {uint64_t{1000}, k2e31, k2e32, k2e63, kMax, kMax - 7}) {
    cases.push_back({patched(file, "length of key a.f64", n),
                     "The name of metadata key 4 reaches beyond the end of the file: the file is cut short or damaged."});
    cases.push_back({patched(file, "length of value of general.architecture", n), "Key 'general.architecture'" + beyond});
    cases.push_back({patched(file, "length of element of a.text", n), "Key 'a.text'" + beyond});
    for (const char* key : {"an.i32", "an.u8", "a.text"}) {
      cases.push_back({patched(file, "number of elements of " + std::string(key), n),
                       "Key '" + std::string(key) + "' announces " + std::to_string(n) +
                           " elements, more than the rest of the file can hold: the file is cut short or damaged."});
    }
  }
  // One element more than the file holds, for every width.
  const auto one_more = [&cases](const GgufWriter& writer) {
    const auto last = writer.build();
    cases.push_back({patched(last, "number of elements of x", 4),
                     "Key 'x' announces 4 elements, more than the rest of the file can hold: the file is cut short or "
                     "damaged."});
  };
  one_more(GgufWriter().set("x", std::vector<uint8_t>(3)));
  one_more(GgufWriter().set("x", std::vector<bool>(3)));
  one_more(GgufWriter().set("x", std::vector<int16_t>(3)));
  one_more(GgufWriter().set("x", std::vector<int32_t>(3)));
  one_more(GgufWriter().set("x", std::vector<float>(3)));
  one_more(GgufWriter().set("x", std::vector<uint64_t>(3)));
  one_more(GgufWriter().set("x", std::vector<double>(3)));
  one_more(GgufWriter().set("x", std::vector<std::string>(3)));
  expect_refused(cases);
}

TEST(Damaged, AlignmentsAreRefused) {
  std::vector<Case> cases = {{GgufWriter().set("general.alignment", "32").bytes(),
                              "Key 'general.alignment' is not an integer: the alignment of tensors can't be told."},
                             {GgufWriter().set("general.alignment", ~uint64_t{0}).bytes(),
                              "Key 'general.alignment' is not an integer: the alignment of tensors can't be told."}};
  for (const int64_t bad : {int64_t{0}, int64_t{1}, int64_t{4}, int64_t{-32}, int64_t{33}, int64_t{48}, int64_t{1} << 25,
                            int64_t{1} << 31, int64_t{1} << 62}) {
    cases.push_back(
        {GgufWriter().set("general.alignment", bad).tensor("w", DType::f32, {1}, zeros(4)).bytes(),
         "Key 'general.alignment' is " + std::to_string(bad) + "; it must be a power of two from 8 to 16777216."});
  }
  expect_refused(cases);
}

TEST(Damaged, TensorDescriptionsAreRefused) {
  const auto file = sample();
  const std::string countless = "Tensor 'q' has more elements than can be counted: the file is damaged.";
  const std::string supported = "(supported: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K).";
  std::vector<Case> cases = {
      {GgufWriter().tensor("", DType::f32, {1}, zeros(4)).bytes(), "Tensor 1 has no name: the file is damaged."},
      {GgufWriter().tensor(std::string(65536, 'n'), DType::f32, {1}, zeros(4)).bytes(),
       "Tensor '" + std::string(80, 'n') + "...' has a name of 65536 bytes; 65535 are supported."},
      {GgufWriter().tensor("w", DType::f32, {1}, zeros(4)).tensor("w", DType::f32, {1}, zeros(4)).bytes(),
       "Tensor 'w' is there more than once: the file is damaged."},
      {GgufWriter().tensor("w", DType::f32, {}, zeros(32)).bytes(), "Tensor 'w' has 0 dimensions; 1 to 4 are supported."},
      {GgufWriter().tensor("w", DType::f32, {1, 1, 1, 1, 1}, zeros(4)).bytes(),
       "Tensor 'w' has 5 dimensions; 1 to 4 are supported."},
      {patched(file, "number of dimensions of q", 0xFFFFFFFF),
       "Tensor 'q' has 4294967295 dimensions; 1 to 4 are supported."},
      {patched(file, "number of dimensions of q", k2e31), "Tensor 'q' has 2147483648 dimensions; 1 to 4 are supported."},
      {GgufWriter().tensor("w", DType::f32, {0}, zeros(4)).bytes(), "Tensor 'w' has a dimension of 0: it is empty."},
      {GgufWriter().tensor("w", DType::f32, {4, 0, 4}, zeros(4)).bytes(), "Tensor 'w' has a dimension of 0: it is empty."},
      {patched(file, "dimension of q", k2e63), countless},
      {patched(file, "dimension of q", kMax), countless},
      {patched(file, "dimension of q", k2e63 - 1), countless},
      {GgufWriter().tensor("q", DType::f32, {1 << 21, 1 << 21, 1 << 21, 2}, zeros(4)).bytes(), countless},
      {GgufWriter().tensor("q", DType::f32, {int64_t{1} << 32, int64_t{1} << 32}, zeros(4)).bytes(), countless},
      {GgufWriter().tensor("w", DType::f32, {int64_t{1} << 62}, zeros(4)).bytes(),
       "Tensor 'w' has more bytes than can be counted: the file is damaged."},
      {GgufWriter().tensor("w", DType::q8_0, {4, 33}, zeros(136)).bytes(),
       "Tensor 'w' of type Q8_0 has rows of 33 elements, which is no multiple of its 32-element blocks."},
      {GgufWriter().tensor("w", DType::q4_k, {256, 32}, zeros(4608)).bytes(),
       "Tensor 'w' of type Q4_K has rows of 32 elements, which is no multiple of its 256-element blocks."},
      {patched(file, "type of w", 43), "Tensor 'w' has type number 43, which is not supported " + supported},
      {patched(file, "type of w", 0xFFFFFFFF),
       "Tensor 'w' has type number 4294967295, which is not supported " + supported},
  };
  // As gguf's constants name them; 4, 5, 31 to 33 and 36 to 38 are what ggml once had there.
  const std::vector<std::pair<uint32_t, std::string>> others = {
      {4, "Q4_2"},        {5, "Q4_3"},       {9, "Q8_1"},      {10, "Q2_K"},     {11, "Q3_K"},     {15, "Q8_K"},
      {16, "IQ2_XXS"},    {17, "IQ2_XS"},    {18, "IQ3_XXS"},  {19, "IQ1_S"},    {20, "IQ4_NL"},   {21, "IQ3_S"},
      {22, "IQ2_S"},      {23, "IQ4_XS"},    {24, "I8"},       {25, "I16"},      {26, "I32"},      {27, "I64"},
      {28, "F64"},        {29, "IQ1_M"},     {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"},
      {35, "TQ2_0"},      {39, "MXFP4"},     {40, "NVFP4"},    {41, "Q1_0"},     {42, "Q2_0"},     {36, "IQ4_NL_4_4"},
      {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
  for (const auto& [number, name] : others) {
    cases.push_back(
        {patched(file, "type of w", number), "Tensor 'w' has type " + name + ", which is not supported " + supported});
  }
  for (const uint64_t n : {uint64_t{1000}, k2e31, k2e32, k2e63, kMax}) {
    cases.push_back({patched(file, "length of name of q", n),
                     "The name of tensor 2 reaches beyond the end of the file: the file is cut short or damaged."});
  }
  expect_refused(cases);
}

TEST(Damaged, PlacesOfTensorsAreRefused) {
  const auto file = sample();
  // The sample's data are 68 bytes: 16 of 'w', padding up to 32, 36 of 'q'.
  std::vector<Case> cases = {
      {patched(file, "offset of q", 64), "Tensor 'q' reaches 32 bytes beyond the end of the file: the file is cut short."},
      {patched(file, "offset of q", 33),
       "Tensor 'q' begins at offset 33, which is no multiple of the file's alignment of 32."},
      {patched(file, "offset of q", kMax),
       "Tensor 'q' begins at offset 18446744073709551615, which is no multiple of the file's alignment of 32."},
      {patched(file, "offset of q", kMax - 31),
       "Tensor 'q' lies at offset 18446744073709551584, beyond the end of any file: the file is damaged."},
      {patched(file, "offset of q", 0), "Tensor 'q' shares bytes with tensor 'w': the file is damaged."},
      {patched(file, "offset of w", 32), "Tensor 'q' shares bytes with tensor 'w': the file is damaged."},
      {GgufWriter().describe("w", 0, {8}, 0).bytes(),
       "Tensor 'w' reaches 32 bytes beyond the end of the file: the file is cut short."},
      {GgufWriter().tensor("a", DType::f32, {16}, zeros(64)).describe("b", 0, {1}, 32).bytes(),
       "Tensor 'b' shares bytes with tensor 'a': the file is damaged."},
  };
  const auto neighbours = [](int64_t elements) {
    return GgufWriter().align(8).tensor("a", DType::f16, {elements}, zeros(16)).describe("b", 1, {4}, 8).bytes();
  };
  EXPECT_TRUE(parse_bounded(neighbours(4)).ok()) << "they touch";
  cases.push_back({neighbours(5), "Tensor 'b' shares bytes with tensor 'a': the file is damaged."});
  for (const uint64_t n : {k2e31, k2e32, k2e63}) {
    const size_t begin = file.bytes().size() - 68;
    cases.push_back({patched(file, "offset of q", n), "Tensor 'q' reaches " +
                                                          std::to_string(begin + n + 36 - file.bytes().size()) +
                                                          " bytes beyond the end of the file: the file is cut short."});
  }
  expect_refused(cases);
}

TEST(Damaged, EveryPrefixIsRefused) {
  const auto bytes = sample().bytes();
  for (size_t n = 0; n < bytes.size(); n++) {
    const auto file = parse_bounded(std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)));
    ASSERT_FALSE(file.ok()) << n << " of " << bytes.size() << " bytes were accepted";
    expect_sentence(file.error().message);
  }
}

// Every number in the file, replaced by every troublesome one. Some results are sound files; those must hold together.
TEST(Damaged, EveryFieldWithEveryTroublesomeNumberIsRefusedOrSound) {
  const auto sound = sample();
  int refused = 0;
  for (const auto& field : sound.fields()) {
    uint64_t old = 0;
    std::memcpy(&old, sound.bytes().data() + field.at, field.bytes);
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, old + 1, old - 1, uint64_t{127}, uint64_t{128}, uint64_t{255},
                                 k2e31 - 1, k2e31, k2e32 - 1, k2e32, k2e63 - 1, k2e63, kMax - 31, kMax}) {
      SCOPED_TRACE(field.what + " = " + std::to_string(value));
      const auto bytes = patched(sound, field, value);
      const auto file = parse_bounded(bytes);
      if (file.ok()) {
        expect_sound(*file, bytes);
        const bool harmless = field.what.starts_with("value of") || field.bytes < 8 || value < bytes.size();
        const bool same = (field.bytes == 4 ? value & 0xFFFFFFFF : value) == old;
        EXPECT_TRUE(harmless || same) << "accepted";
      } else {
        refused++;
        expect_sentence(file.error().message);
      }
    }
  }
  EXPECT_GT(refused, 300);
}

// Bytes at random places changed at random: no crash, and what is accepted is sound.
TEST(Damaged, RandomChangesAreRefusedOrSound) {
  const auto sound = sample().bytes();
  uint64_t state = 1;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  };
  for (int round = 0; round < 20000; round++) {
    auto bytes = sound;
    for (uint64_t n = next() % 4 + 1; n > 0; n--) bytes[next() % bytes.size()] = static_cast<std::byte>(next());
    const auto file = parse_bounded(bytes);
    if (file.ok()) {
      expect_sound(*file, bytes);
    } else {
      expect_sentence(file.error().message);
    }
  }
}

// Files whose lists are as dense as the format allows: the memory they take stays in proportion.
TEST(Damaged, DenseFilesTakeMemoryInProportion) {
  GgufWriter many_keys;
  for (int i = 0; i < 2000; i++) many_keys.set(std::to_string(i), uint8_t{1});
  EXPECT_TRUE(parse_bounded(many_keys.bytes()).ok());
  EXPECT_TRUE(parse_bounded(GgufWriter().set("x", std::vector<uint8_t>(100000)).bytes()).ok());
  EXPECT_TRUE(parse_bounded(GgufWriter().set("x", std::vector<std::string>(20000)).bytes()).ok());
  EXPECT_TRUE(parse_bounded(GgufWriter().set("x", std::vector<uint64_t>(20000)).bytes()).ok());
  GgufWriter many_tensors;
  for (int i = 0; i < 2000; i++) many_tensors.tensor(std::to_string(i), DType::f16, {1}, zeros(2));
  EXPECT_TRUE(parse_bounded(many_tensors.bytes()).ok());
}

}  // namespace
}  // namespace unisono::checkpoint
