// The angles of rotary position embeddings. Computed with our own functions in double, from additions, products and
// divisions only: the same bits on every machine.
#pragma once

#include <span>
#include <vector>

namespace unisono::model {

// 1 / (base^(2 i / dims) * factor[i] * scale) for i < dims / 2, rounded to float. factors: empty, or a divisor for each i
// (the tensor rope_freqs of Llama 3).
std::vector<float> rope_frequencies(int dims, float base, float scale, std::span<const float> factors);

// cosines[i] and sines[i] of float(position) * frequencies[i]; the product is rounded to float first, as the models were
// trained. Errors below 1e-7 for positions up to 2^24.
void rope_angles(int position, std::span<const float> frequencies, float* cosines, float* sines);

}  // namespace unisono::model
