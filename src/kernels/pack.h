// From a tensor as it lies in a file to panels. Exact: no value and no scale is rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tensor.h"
#include "kernels/panel.h"

namespace unisono::kernels {

// Bytes of one panel of a [n][k] matrix of this type, a multiple of 64. k must hold whole blocks of the type.
size_t panel_bytes(DType type, int64_t k);
inline int panel_count(int64_t n) { return static_cast<int>((n + kLanes - 1) / kLanes); }

// Packs 16 rows into one panel at `out` (zeroed memory of panel_bytes()). rows[lane] points to a row of the file's blocks;
// null: a lane of zeros.
void pack_panel(DType type, int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out);

// Where value `i` of a lane lies in a BF16 panel (panel.h): of four, row i % 2 of their two, place i % 4 / 2 in the lane's pair.
constexpr size_t bf16_place(size_t i, size_t lane) { return (i / 4 * 2 + i % 2) * 2 * kLanes + 2 * lane + i % 4 / 2; }

// Whether all n F16 values at `data` are exact in BF16; and the packing of such rows, of k values, as a BF16 panel.
bool halves_are_bf16(const std::byte* data, int64_t n);
void pack_halves_as_bf16(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out);

}  // namespace unisono::kernels
