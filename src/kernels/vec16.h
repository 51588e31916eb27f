// Picks the Vec16 of the instruction set this file is compiled for. Included by the ISA-compiled sources only; they include
// no containers or algorithms, whose weak symbols would carry wide instructions into the rest of the program.
#pragma once

#if defined(UNISONO_ISA_AVX512)
#if defined(__AMX_INT8__)
#define KERNEL_ISA amx
#elif defined(__AVX512BF16__)
#define KERNEL_ISA avx512bf16
#else
#define KERNEL_ISA avx512
#endif
#include "kernels/vec16_avx512.h"
#elif defined(UNISONO_ISA_AVX2)
#if defined(__AVXVNNI__)
#define KERNEL_ISA avxvnni
#else
#define KERNEL_ISA avx2
#endif
#include "kernels/vec16_avx2.h"
#else
#define KERNEL_ISA scalar
#include "kernels/vec16_scalar.h"
#endif
#if !defined(UNISONO_ISA_AVX2) || defined(__AVXVNNI__)
#include "kernels/plain_operands.h"
#endif

#define UNISONO_UNROLL _Pragma("GCC unroll 16")
