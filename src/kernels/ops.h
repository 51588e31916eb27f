// The kernels as a table of functions, one table per instruction set. All tables compute the same bits: every sum runs
// along one lane in index order with the same fused multiply-adds, integer products are exact, and exp and friends are our
// own polynomials. No function here knows of threads: callers deal out rows, panels and attention items.
// Callers flush denormals to zero (base/thread_team.h does for its threads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/panel.h"

namespace unisono::kernels {

inline constexpr int kSplit = 256;      // positions whose soft-max is taken in one piece
inline constexpr int kPage = 16;        // positions in a block of keys and values
inline constexpr int kMaxQueries = 64;  // queries (tokens x heads of a kv head) of one attention item
inline constexpr int kMaxHeadDim = 512;

enum class GateKind : uint8_t { silu, gelu_tanh };

// Where one kv head's keys and values of one layer lie. Block b starts at base + b * stride: keys [head_dim][16 positions],
// then values [16 positions][head_dim rounded up to 16], both f16 or both f32.
struct KvView {
  std::byte* base = nullptr;
  size_t stride = 0;
  int head_dim = 0;
  bool f32 = false;
};

// Consecutive tokens of one sequence against one kv head, over some splits of their context.
struct AttentionItem {
  const float* q = nullptr;  // query (token t, head g of the group) at q + t * q_stride + g * head_dim, scaled already
  int64_t q_stride = 0;
  int tokens = 0, group = 0;      // tokens * group <= kMaxQueries
  int first_position = 0;         // of token 0
  int window = 0;                 // positions a token sees, itself included; 0: all
  const int32_t* blocks = nullptr;  // the sequence's block table
  KvView kv{};
};

// A soft-max in progress over the positions seen so far: max, sum of exponentials, and the values weighted by them.
// In memory: [top, sum, 14 unused, values[head_dim rounded up to 16]].
constexpr size_t attention_state_floats(int head_dim) { return 16 + (static_cast<size_t>(head_dim) + 15) / 16 * 16; }

struct Ops {
  const char* name;
  bool (*runs_here)();

  // x[values] -> out[values / 32]; values a multiple of 32. scale = max |x| / 127, q = round to nearest even.
  void (*quantise)(const float* x, int64_t values, QuantBlock* out);
  // What quantise() rounded off: y = x - scale * q. Quantised again, it doubles the digits.
  void (*rounding)(const float* x, int64_t values, const QuantBlock* rounded, float* y);

  // y[row * ldy + n] = sum over k of x[row][k] * w[n][k] for the lanes of panels [begin, end), written whole: y must have
  // room for 16 * end columns. x: [rows][ceil(k / 32)] blocks, zero beyond k. Quantised types only.
  // Per lane and block, in order: f = fma(float(exact integer dot), weight scale * activation scale, f), and where the type
  // has a minimum m: f = fma(m, activation scale * sum, f).
  void (*matmul_int8)(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end);
  // The same with f32 activations, all types: f = fma(w, x, f) in K order with the weights dequantised as GGUF defines.
  void (*matmul_f32)(const PanelMatrix& w, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int begin, int end);

  // y[i] = (x[i] * 1 / sqrt(mean(x^2) + eps)) * weight[i]; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, float* y, int n);
  void (*add)(float* x, const float* y, int n);              // x += y
  void (*scale)(float* x, float factor, int n);              // x *= factor
  void (*gate)(GateKind kind, const float* gate, const float* up, float* out, int n);  // out = act(gate) * up; may be in place
  // Rotates pairs (i, i + dims/2) of x[dims]: cos and sin are [dims / 2].
  void (*rope)(float* x, const float* cosines, const float* sines, int dims);

  // Writes one token's key and value [head_dim] at `position` of its block. f16 saturates at its largest finite number.
  void (*store_kv)(const KvView& kv, int block, int slot, const float* key, const float* value);

  // Attends to splits [begin, end) in order. states: one per query (token-major, then head), `state_stride` floats apart.
  //   fold:     the running states are updated split by split; the caller starts with attention_begin().
  //   not fold: split s's own state is written at states + query * state_stride + (s - begin) * attention_state_floats.
  void (*attend)(const AttentionItem& item, int begin, int end, bool fold, float* states, size_t state_stride);
  // Folds a split's own state into the running one: the same operations as attend with fold.
  void (*attention_fold)(float* running, const float* split, int head_dim);
  // out[head_dim] = values / sum.
  void (*attention_finish)(const float* state, float* out, int head_dim);
};

// Sets a running state to "nothing seen".
void attention_begin(float* state, int head_dim);

// All tables built into this program, the plain scalar reference first.
std::span<const Ops* const> compiled_ops();
// The fastest table that runs on this CPU.
const Ops& best_ops();
// By name ("scalar", "avx2", "avx512"); null: unknown, or doesn't run here.
const Ops* find_ops(const char* name);

}  // namespace unisono::kernels
