// Counter-based random numbers: the same (key, counter) gives the same numbers, whoever asks, in whatever order.
// Philox 4x32 with 10 rounds, from Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace unisono {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Uniform in [0, 1) with 53 bits, for (seed, stream, position).
inline double philox_uniform(uint64_t seed, uint32_t stream, uint64_t position) {
  const auto r = philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), stream, 0},
                        {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{r[0]} << 32 | r[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace unisono
