// Weights as dot() takes them where an instruction multiplies unsigned with signed bytes into 32 bits: as they are. vec16_avx2.h
// has it otherwise for CPUs without such an instruction.
#pragma once

namespace unisono::kernels::KERNEL_ISA {

// dot() of 8-bit weights takes them as unsigned w + 128: the caller corrects by 128 times the activations' sum.
inline constexpr bool kBytesAreUnsigned = true;

// Weights of Bits bits as dot() takes them, and such in memory.
inline constexpr int kOperandBytes = 64;
template <int Bits>
UNISONO_INLINE Bytes operand(Bytes w) {
  return w;
}
template <int Bits>
UNISONO_INLINE Bytes load_operand(const uint8_t* p) {
  return load_bytes(p);
}
UNISONO_INLINE void store_operand(uint8_t* p, Bytes a) { store_bytes(p, a); }

// So many groups of products of Bits-bit weights are summed in 16 bits before they are in 32. Less than 2: none.
template <int Bits>
inline constexpr int kShortGroups = 0;
using Shorts = Ints;
UNISONO_INLINE Shorts zero_shorts() { return set_ints(0); }
UNISONO_INLINE Ints sum_pairs(Ints acc, Shorts a) { return add(acc, a); }

}  // namespace unisono::kernels::KERNEL_ISA
