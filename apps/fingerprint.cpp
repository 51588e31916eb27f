#include "fingerprint.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace unisono::apps {

namespace {

constexpr size_t kChunk = 1 << 20;

struct Digest {
  uint64_t a = 0x243F6A8885A308D3, b = 0x13198A2E03707344;  // digits of pi
};

// Folds a 128-bit product: every bit of both factors reaches every bit of the result.
uint64_t fold(uint64_t x, uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

void add(Digest& digest, uint64_t x, uint64_t y) {
  const uint64_t a = fold(digest.a ^ x, y ^ 0xA4093822299F31D1);
  digest.b = fold(digest.b ^ y, x ^ 0x082EFA98EC4E6C89) + a;
  digest.a = a ^ (digest.b << 32 | digest.b >> 32);
}

Digest digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  add(digest, bytes.size(), 1);
  while (!bytes.empty()) {
    uint64_t words[2] = {0, 0};
    const size_t n = std::min(bytes.size(), sizeof words);
    std::memcpy(words, bytes.data(), n);
    add(digest, words[0], words[1]);
    bytes = bytes.subspan(n);
  }
  return digest;
}

}  // namespace

Result<std::string> fingerprint(const std::string& path, std::string_view numerics, ThreadTeam& team) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  std::vector<Digest> chunks((bytes.size() + kChunk - 1) / kChunk);
  team.run([&](Worker& worker) {
    const auto mine = worker.share(static_cast<int64_t>(chunks.size()));
    for (auto i = static_cast<size_t>(mine.begin); i < static_cast<size_t>(mine.end); i++) {
      const auto chunk = bytes.subspan(i * kChunk, std::min(kChunk, bytes.size() - i * kChunk));
      chunks[i] = digest_of(chunk);
      file->release(chunk);  // or the whole file would stand in memory beside the packed weights
    }
  });
  Digest whole = digest_of(std::as_bytes(std::span(numerics)));
  for (const Digest& chunk : chunks) add(whole, chunk.a, chunk.b);
  std::string text = "fp_";
  for (const uint64_t half : {whole.a, whole.b}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[half >> shift & 15];
  }
  return text;
}

}  // namespace unisono::apps
