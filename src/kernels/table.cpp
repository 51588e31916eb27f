// The table of one instruction set, compiled once for each.
#include "kernels/isa.h"

#if defined(__AVXVNNI__)
#include <cpuid.h>
#endif

namespace unisono::kernels {

namespace {
#if defined(__AVXVNNI__)
bool has_avx_vnni() {  // Clang 14 doesn't know that name either
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}
#endif
// Asked of every table: as cold code it lies beside the others', not among kernels, whose pages would come to memory with it.
[[gnu::cold]] bool runs_here() {
#if defined(UNISONO_ISA_AVX512)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")
#if defined(__AVX512BF16__)
         && __builtin_cpu_supports("avx512bf16")
#endif
      ;
#elif defined(UNISONO_ISA_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
#if !defined(__clang__)  // Clang 14 doesn't know the name; CPUs with AVX2 have it
         && __builtin_cpu_supports("f16c")
#endif
#if defined(__AVXVNNI__)
         && has_avx_vnni()
#endif
      ;
#else
  return true;
#endif
}
}  // namespace

#define UNISONO_TEXT(x) #x
#define UNISONO_NAME(x) UNISONO_TEXT(x)
#define UNISONO_JOIN(a, b) a##b
#define UNISONO_TABLE(isa) UNISONO_JOIN(ops_, isa)

extern const Ops UNISONO_TABLE(KERNEL_ISA);
constinit const Ops UNISONO_TABLE(KERNEL_ISA) = {
    .name = UNISONO_NAME(KERNEL_ISA),
    .runs_here = runs_here,
    .quantise = KERNEL_ISA::quantise,
    .rounding = KERNEL_ISA::rounding,
    .round_bf16 = KERNEL_ISA::round_bf16,
    .matmul_int8 = KERNEL_ISA::matmul_int8,
    .matmul_bf16 = KERNEL_ISA::matmul_bf16,
    .matmul_f32 = KERNEL_ISA::matmul_f32,
    .rms_norm = KERNEL_ISA::rms_norm,
    .add = KERNEL_ISA::add_rows,
    .maximum = KERNEL_ISA::maximum_of,
    .scale = KERNEL_ISA::scale_row,
    .add_scaled = KERNEL_ISA::add_scaled,
    .softmax = KERNEL_ISA::softmax,
    .gate = KERNEL_ISA::gate,
    .rope = KERNEL_ISA::rope,
    .store_kv = KERNEL_ISA::store_kv,
    .attend = KERNEL_ISA::attend,
    .attention_fold = KERNEL_ISA::attention_fold,
    .attention_finish = KERNEL_ISA::attention_finish,
};

}  // namespace unisono::kernels
