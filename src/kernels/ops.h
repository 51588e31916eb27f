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

// Number types of cached keys and values. q8_0: each 32 of a head's values share a scale. bf16 also multiplies in bf16: queries
// and exponentials are rounded to it, sums are f32.
enum class KvType : uint8_t { f16, bf16, f32, q8_0 };

// Where one kv head's keys and values of one layer lie. Block b starts at base + b * stride: keys [head_dim][16 positions],
// then values [16 positions][head_dim rounded up to 16]; with q8_0 then their scales in f32, [ceil(head_dim / 32)][16 positions]
// and [16 positions][ceil(head_dim / 32)]. bf16 lies in pairs that multiply together: keys [head_dim / 2][16 positions][2 dims],
// values [8][head_dim rounded up to 16][2 positions].
struct KvView {
  std::byte* base = nullptr;
  size_t stride = 0;
  int head_dim = 0;
  KvType type = KvType::f16;
};
// Bytes of such a block, a multiple of 64.
size_t kv_bytes(KvType type, int head_dim);

// One token's part in an item.
struct AttentionToken {
  const float* q = nullptr;  // head g of the group at q + g * head_dim, scaled already
  float* states = nullptr;   // head g's at states + g * head_stride
  int position = 0;
};

// At most so many blocks are fetched ahead of the one in use.
inline constexpr int kBlocksAhead = 8;

// Tokens against one kv head, over some splits of their context that lie in the same blocks: consecutive tokens of one
// sequence, or tokens of sequences that share these blocks and have them all behind them.
struct AttentionItem {
  const AttentionToken* tokens = nullptr;
  int n_tokens = 0, group = 0;      // n_tokens * group <= kMaxQueries
  size_t head_stride = 0;           // floats
  int window = 0;                   // positions a token sees, itself included; 0: all
  const int32_t* blocks = nullptr;  // the block table, of at least all positions seen
  KvView kv{};
  // The blocks that the calling thread reads next, or null: fetched while the last values are used.
  const std::byte* then[kBlocksAhead] = {};
};

// A soft-max in progress over the positions seen so far: max, sum of exponentials, and the values weighted by them.
// In memory: [top, sum, 14 unused, values[head_dim rounded up to 16]].
constexpr size_t attention_state_floats(int head_dim) { return 16 + (static_cast<size_t>(head_dim) + 15) / 16 * 16; }

// Memory that is read a while later, such as keys and values: chunks that are fetched one after the other, some lines with
// each step of a product, as far as the last-level cache. A product fetches its share and moves it on.
struct Later {
  const std::byte* base = nullptr;
  size_t stride = 0;                   // chunk c lies at base + stride * c
  std::span<const int32_t> chunks{};   // those still to be fetched; of the first `line` lines are
  int chunk_lines = 0, line = 0;
  double pace = 0;                     // lines for each row of a block of a panel
  double owed = 0;                     // lines that are due by now
};

// Memory that the caller will read next: fetched while a product uses its last panels, so that memory never rests.
struct Upcoming {
  const std::byte* at = nullptr;
  size_t bytes = 0;
  Later* later = nullptr;  // fetched beside the panels; null: nothing
};

struct Ops {
  const char* name;
  bool (*runs_here)();

  // x[values] -> out[values / 32]; values a multiple of 32. scale = max |x| / 127, q = round to nearest even; where the scale is
  // flushed to 0, all q are 0.
  void (*quantise)(const float* x, int64_t values, QuantBlock* out);
  // What quantise() rounded off: y = x - scale * q. Quantised again, it doubles the digits.
  void (*rounding)(const float* x, int64_t values, const QuantBlock* rounded, float* y);

  // x[values] -> out[values / 32], rounded to nearest even; values a multiple of 32. No x is denormal, as nothing is that was
  // computed with these flushed: the largest would be rounded up by some tables and taken for 0 by AVX-512 BF16.
  void (*round_bf16)(const float* x, int64_t values, Bf16Block* out);

  // y[row * ldy + n] = sum over k of x[row][k] * w[n][k] for the lanes of panels [begin, end), written whole: y must have
  // room for 16 * end columns. x: [rows][ceil(k / 32)] blocks, zero beyond k. Quantised types only.
  // Per lane and block, in order: f = fma(float(exact integer dot), weight scale * activation scale, f), and where the type
  // has a minimum m: f = fma(m, activation scale * sum, f). Q6_K, with a scale for each half of a block: t = fma(second dot,
  // second scale, first dot * first scale), then f = fma(t, activation scale, f).
  void (*matmul_int8)(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);
  // The same with bf16 activations, for BF16 and quantised types, whose integers are exact in bf16. Of each four k the pairs
  // (0, 2), then (1, 3) enter as s = fma(w0, x0, fma(w1, x1, s)): BF16 weights into the result itself; integers from s = 0 in each
  // block (Q6_K: each half of it), then f = fma(s, weight scale, f), and with a minimum m: f = fma(m, sum of the block's x, f).
  // Denormals must be flushed, or instruction sets differ.
  void (*matmul_bf16)(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);
  // The same with f32 activations, all types: f = fma(w, x, f) in K order with the weights dequantised as GGUF defines.
  void (*matmul_f32)(const PanelMatrix& w, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);

  // y[i] = (x[i] * 1 / sqrt(mean(x^2) + eps)) * weight[i]; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, float* y, int n);
  void (*add)(float* x, const float* y, int n);              // x += y
  float (*maximum)(const float* x, int n);                   // the largest; n at least 1
  void (*scale)(float* x, float factor, int n);              // x *= factor
  void (*add_scaled)(float* x, const float* y, float factor, int n);  // x = fma(y, factor, x)
  void (*softmax)(float* x, int n);                          // x = e^(x - largest), over their sum; n at least 1
  void (*gate)(GateKind kind, const float* gate, const float* up, float* out, int n);  // out = act(gate) * up; may be in place
  // Rotates pairs (i, i + dims/2) of x[dims]: cos and sin are [dims / 2].
  void (*rope)(float* x, const float* cosines, const float* sines, int dims);

  // Writes one token's key and value [head_dim] at `slot` of its block. f16 and bf16 saturate at their largest finite number.
  void (*store_kv)(const KvView& kv, int block, int slot, const float* key, const float* value);

  // Attends to splits [begin, end) in order.
  //   fold:     the queries' states become those of the first split, then the others are folded into them.
  //   not fold: split s's own state is written (s - begin) * attention_state_floats behind the query's.
  void (*attend)(const AttentionItem& item, int begin, int end, bool fold);
  // Folds a split's own state into the running one: the same operations as attend with fold, from "nothing seen" on too.
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
// A sentence why best_ops() is not the table for which this CPU has the instructions; null: it is.
const char* passed_over();
// By name ("scalar", "avx2", "avxvnni", "avx512", "avx512bf16", "amx"); null: unknown, or doesn't run here.
const Ops* find_ops(const char* name);

}  // namespace unisono::kernels
