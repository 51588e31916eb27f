#include "model/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "kernels/quant.h"
#include "model/rope.h"

namespace unisono::model {

using kernels::Bf16Block;
using kernels::kLanes;
using kernels::kSplit;
using kernels::QuantBlock;

namespace {
int padded(int n) { return (n + kLanes - 1) / kLanes * kLanes; }
kernels::GateKind gate_kind(Activation a) {
  return a == Activation::silu ? kernels::GateKind::silu : kernels::GateKind::gelu_tanh;
}
}  // namespace

Step::Step(const Arch& arch, const Hparams& hparams, const Weights& weights, const kernels::Ops& ops)
    : arch_(arch), h_(hparams), w_(weights), ops_(ops) {
  frequencies_ = rope_frequencies(h_.rope_dims, h_.rope_base, h_.rope_scale, w_.rope_factors);
  local_frequencies_ = rope_frequencies(h_.rope_dims, h_.local_rope_base, 1, {});
  for (const Layer& layer : w_.layers) {
    qkv_columns_ = std::max(qkv_columns_, layer.qkv.columns());
    gate_columns_ = std::max(gate_columns_, layer.gate_up.columns());
  }
  d_columns_ = padded(h_.d_model);
  const int group = h_.n_heads / h_.n_kv_heads;
  check(group <= kernels::kMaxQueries && h_.head_dim <= kernels::kMaxHeadDim, "the loader refuses larger heads and groups");
  tile_tokens_ = std::clamp(36 / group, 1, 12);
  for (const Layer& l : w_.layers)
    most_blocks_ = std::max({most_blocks_, l.qkv.k() / kernels::kBlock, l.attn_output.k() / kernels::kBlock, l.ffn_down.k() / kernels::kBlock});
  next_job_ = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(h_.n_layers));
}

// ---- one worker's part of a step

class Step::Part {
 public:
  Part(Step& step, const Batch& batch, KvStore& kv, Worker& worker) : s_(step), batch_(batch), kv_(kv), worker_(worker) {
    const auto mine = worker.share(s_.deal_.rows());
    const auto w = static_cast<size_t>(worker.index());
    rows_ = s_.deal_.by_rows ? Worker::Range{s_.deal_.first_row[w], s_.deal_.first_row[w + 1]} : mine;
  }

  void run() {
    embed();
    for (int i = 0; i < s_.h_.n_layers; i++) layer(i);
    worker_.barrier();  // the outputs' rows may be another worker's
    outputs();
  }

 private:
  // Between a phase over rows and one over panels. Workers that keep their rows have nothing to wait for.
  void meet() {
    if (!s_.deal_.by_rows) worker_.barrier();
  }
  float* x(int row) { return s_.x_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.d_columns_); }
  float* y(int row) { return s_.y_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.d_columns_); }
  float* qkv(int row) { return s_.qkv_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.qkv_columns_); }
  float* gate_up(int row) { return s_.gate_up_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.gate_columns_); }
  float* attended(int row) {
    return s_.attended_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.h_.n_heads * s_.h_.head_dim);
  }

  // Where row 0 of rounded activations for `linear` would lie. Rows are as long as its k asks, so workers that keep their
  // rows and may be at different products must not share one numbering: each has the stretch of its own rows.
  template <class Block>
  Block* rounded_rows(Buffer& buffer, const Linear& linear) {
    Block* all = buffer.as<Block>().data();
    if (all == nullptr) return nullptr;  // no product of this model takes them
    return s_.deal_.by_rows ? all + rows_.begin * (s_.most_blocks_ - linear.k() / kernels::kBlock) : all;
  }
  QuantBlock* int8_rows(const Linear& linear) { return rounded_rows<QuantBlock>(s_.int8_, linear); }
  Bf16Block* bf16_rows(const Linear& linear) { return rounded_rows<Bf16Block>(s_.bf16_, linear); }
  // Activations of my rows as `linear` wants them; values at `row_of(row)`.
  template <class RowOf>
  void prepare(const Linear& linear, RowOf row_of) {
    const int64_t blocks = linear.k() / kernels::kBlock;
    if (linear.needs(Activations::int8)) {
      QuantBlock* int8 = int8_rows(linear);
      for (int64_t r = rows_.begin; r < rows_.end; r++) s_.ops_.quantise(row_of(static_cast<int>(r)), linear.k(), int8 + r * blocks);
    }
    if (linear.needs(Activations::bf16)) {
      Bf16Block* bf16 = bf16_rows(linear);
      for (int64_t r = rows_.begin; r < rows_.end; r++) s_.ops_.round_bf16(row_of(static_cast<int>(r)), linear.k(), bf16 + r * blocks);
    }
  }
  void multiply(const Linear& linear, const float* in, int64_t in_stride, float* out, int64_t out_stride) {
    const ActivationRows a{int8_rows(linear), bf16_rows(linear), in, in_stride};
    if (s_.deal_.by_rows) {
      linear.multiply(s_.ops_, a, static_cast<int>(rows_.begin), static_cast<int>(rows_.end - rows_.begin), out, out_stride, 0,
                      linear.panels());
    } else {
      const auto panels = worker_.share(linear.panels(), 2);  // kernels take panels in pairs
      linear.multiply(s_.ops_, a, 0, s_.deal_.rows(), out, out_stride, static_cast<int>(panels.begin), static_cast<int>(panels.end));
    }
  }

  void embed() {
    const float scale = std::sqrt(static_cast<float>(s_.h_.d_model));  // exactly rounded by IEEE 754
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const int row = static_cast<int>(r);
      const auto token = batch_.tokens[static_cast<size_t>(s_.deal_.batch_row[static_cast<size_t>(r)])];
      const TensorView& e = s_.w_.embedding;
      kernels::dequantise_row(e.type, e.data + e.row_bytes() * static_cast<size_t>(token), s_.h_.d_model, x(row));
      if (s_.arch_.scale_embedding) s_.ops_.scale(x(row), scale, s_.h_.d_model);
    }
  }

  void layer(int index) {
    const Layer& l = s_.w_.layers[static_cast<size_t>(index)];
    norm_rows(l.attn_norm);
    prepare(l.qkv, [&](int r) { return y(r); });
    meet();
    multiply(l.qkv, y(0), s_.d_columns_, qkv(0), s_.qkv_columns_);
    meet();
    for (int64_t r = rows_.begin; r < rows_.end; r++) rotate_and_store(l, index, static_cast<int>(r));
    worker_.barrier();  // keys and values of all rows are there
    attention(l, index);
    meet();
    finish_apart(index);
    prepare(l.attn_output, [&](int r) { return attended(r); });
    meet();
    multiply(l.attn_output, attended(0), s_.h_.n_heads * s_.h_.head_dim, y(0), s_.d_columns_);
    meet();
    add_to_residual(l.post_attn_norm);
    // Feed-forward.
    norm_rows(l.ffn_norm);
    prepare(l.gate_up, [&](int r) { return y(r); });
    meet();
    multiply(l.gate_up, y(0), s_.d_columns_, gate_up(0), s_.gate_columns_);
    meet();
    const int up = l.gate_up.first_column(1);
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      float* g = gate_up(static_cast<int>(r));
      s_.ops_.gate(gate_kind(s_.arch_.activation), g, g + up, g, s_.h_.d_ff);
    }
    prepare(l.ffn_down, [&](int r) { return gate_up(r); });
    meet();
    multiply(l.ffn_down, gate_up(0), s_.gate_columns_, y(0), s_.d_columns_);
    meet();
    add_to_residual(l.post_ffn_norm);
  }

  void norm_rows(const std::vector<float>& weight) {
    for (int64_t r = rows_.begin; r < rows_.end; r++)
      s_.ops_.rms_norm(x(static_cast<int>(r)), weight.data(), s_.h_.norm_eps, y(static_cast<int>(r)), s_.h_.d_model);
  }
  // x += y, normed first where the family has a norm there.
  void add_to_residual(const std::vector<float>& post_norm) {
    for (int64_t row = rows_.begin; row < rows_.end; row++) {
      const int r = static_cast<int>(row);
      if (!post_norm.empty()) s_.ops_.rms_norm(y(r), post_norm.data(), s_.h_.norm_eps, y(r), s_.h_.d_model);
      s_.ops_.add(x(r), y(r), s_.h_.d_model);
    }
  }

  // A row's q, k and v: biases, norms, rotation; q scaled; k and v into the store.
  void rotate_and_store(const Layer& l, int index, int row) {
    const Hparams& h = s_.h_;
    float* all = qkv(row);
    if (!l.qkv_bias.empty()) s_.ops_.add(all, l.qkv_bias.data(), l.qkv.columns());
    float* q = all + l.qkv.first_column(0);
    float* k = all + l.qkv.first_column(1);
    const float* v = all + l.qkv.first_column(2);
    const bool local = h.windowed[static_cast<size_t>(index)] != 0;
    const size_t half = static_cast<size_t>(h.rope_dims / 2);
    const float* cosines = s_.angles_.as<float>().data() + static_cast<size_t>(row) * 4 * half + (local ? 2 * half : 0);
    auto turn = [&](float* head, const std::vector<float>& norm) {
      if (!norm.empty()) s_.ops_.rms_norm(head, norm.data(), h.norm_eps, head, h.head_dim);
      s_.ops_.rope(head, cosines, cosines + half, h.rope_dims);
    };
    for (int i = 0; i < h.n_heads; i++) turn(q + i * h.head_dim, l.q_norm);
    s_.ops_.scale(q, h.attention_scale, h.n_heads * h.head_dim);
    const int position = s_.deal_.position[static_cast<size_t>(row)];
    const int block = sequence_of(row).block_table[static_cast<size_t>(position / kBlockTokens)];
    for (int i = 0; i < h.n_kv_heads; i++) {
      turn(k + i * h.head_dim, l.k_norm);
      s_.ops_.store_kv(view(index, i), block, position % kBlockTokens, k + i * h.head_dim, v + i * h.head_dim);
    }
  }
  const BatchSequence& sequence_of(int row) const {
    return batch_.sequences[static_cast<size_t>(s_.deal_.sequence[static_cast<size_t>(row)])];
  }
  kernels::KvView view(int layer, int kv_head) { return {kv_.head(layer, kv_head), kv_.stride(), s_.h_.head_dim, kv_.type()}; }

  // Threads that keep their rows take their own tiles; else all take jobs as they get free.
  void attention(const Layer& l, int index) {
    if (s_.deal_.by_rows) {
      const auto w = static_cast<size_t>(worker_.index());
      int rows[kernels::kMaxQueries];
      for (int kv_head = 0; kv_head < s_.h_.n_kv_heads; kv_head++)
        for (int t = s_.deal_.first_tile[w]; t < s_.deal_.first_tile[w + 1]; t++) {
          const Tile& tile = s_.deal_.tiles[static_cast<size_t>(t)];
          std::iota(rows, rows + tile.tokens, tile.row);
          whole(l, index, {rows, static_cast<size_t>(tile.tokens)}, kv_head);
        }
      return;
    }
    const int n = static_cast<int>(s_.plan_.jobs.size());
    for (int at; (at = s_.next_job_[static_cast<size_t>(index)].fetch_add(1)) < n;) {
      const AttentionJob& job = s_.plan_.jobs[static_cast<size_t>(at)];
      const auto rows = std::span<const int>(s_.plan_.rows).subspan(static_cast<size_t>(job.first_row), static_cast<size_t>(job.n_rows));
      if (s_.plan_.apart == 0) {
        whole(l, index, rows, job.kv_head);
      } else {
        apart(l, index, rows, job);
      }
    }
  }
  // The rows' queries against a kv head, over splits [begin, end) of the blocks of the first row's sequence. states_of(i):
  // where those of row i of `rows` go, `head_stride` floats a head.
  template <class StatesOf>
  void attend(const Layer& l, int index, std::span<const int> rows, int kv_head, int begin, int end, bool fold, size_t head_stride,
              StatesOf states_of) {
    const int group = s_.h_.n_heads / s_.h_.n_kv_heads;
    const int first_query = l.qkv.first_column(0) + kv_head * group * s_.h_.head_dim;
    kernels::AttentionToken tokens[kernels::kMaxQueries];
    for (size_t i = 0; i < rows.size(); i++)
      tokens[i] = {qkv(rows[i]) + first_query, states_of(i), s_.deal_.position[static_cast<size_t>(rows[i])]};
    s_.ops_.attend({.tokens = tokens,
                    .n_tokens = static_cast<int>(rows.size()),
                    .group = group,
                    .head_stride = head_stride,
                    .window = s_.h_.windowed[static_cast<size_t>(index)] ? s_.h_.window : 0,
                    .blocks = sequence_of(rows[0]).block_table.data(),
                    .kv = view(index, kv_head)},
                   begin, end, fold);
  }
  // All of the context of consecutive rows of a sequence, folded as it goes.
  void whole(const Layer& l, int index, std::span<const int> rows, int kv_head) {
    const int dims = s_.h_.head_dim, group = s_.h_.n_heads / s_.h_.n_kv_heads;
    const size_t floats = kernels::attention_state_floats(dims), queries = rows.size() * static_cast<size_t>(group);
    alignas(64) float states[kernels::kMaxQueries * kernels::attention_state_floats(kernels::kMaxHeadDim)];
    for (size_t r = 0; r < queries; r++) kernels::attention_begin(states + floats * r, dims);
    attend(l, index, rows, kv_head, s_.first_split(rows.front(), index), s_.last_split(rows.back()), true, floats,
           [&](size_t i) { return states + floats * i * static_cast<size_t>(group); });
    for (size_t r = 0; r < queries; r++) {
      const int head = kv_head * group + static_cast<int>(r) % group;
      s_.ops_.attention_finish(states + floats * r, attended(rows[r / static_cast<size_t>(group)]) + head * dims, dims);
    }
  }
  // Some splits, their states kept for finish_apart().
  void apart(const Layer& l, int index, std::span<const int> rows, const AttentionJob& job) {
    int begin = job.end;
    for (const int row : rows) begin = std::min(begin, std::max(job.begin, s_.first_split(row, index)));
    if (begin == job.end) return;  // behind the window of all of them
    attend(l, index, rows, job.kv_head, begin, job.end, false, kept_stride(),
           [&](size_t i) { return kept(rows[i], job.kv_head * (s_.h_.n_heads / s_.h_.n_kv_heads), begin); });
  }
  // [row][head][split][state]
  size_t kept_stride() const { return static_cast<size_t>(s_.plan_.apart) * kernels::attention_state_floats(s_.h_.head_dim); }
  float* kept(int row, int head, int split) {
    const auto query = static_cast<size_t>(row * s_.h_.n_heads + head);
    return s_.states_.as<float>().data() + query * kept_stride() + static_cast<size_t>(split) * kernels::attention_state_floats(s_.h_.head_dim);
  }
  void finish_apart(int index) {
    if (s_.deal_.by_rows || s_.plan_.apart == 0) return;
    const int dims = s_.h_.head_dim;
    alignas(64) float state[kernels::attention_state_floats(kernels::kMaxHeadDim)];
    for (int row = static_cast<int>(rows_.begin); row < static_cast<int>(rows_.end); row++)
      for (int head = 0; head < s_.h_.n_heads; head++) {
        kernels::attention_begin(state, dims);
        for (int split = s_.first_split(row, index); split < s_.last_split(row); split++)
          s_.ops_.attention_fold(state, kept(row, head, split), dims);
        s_.ops_.attention_finish(state, attended(row) + head * dims, dims);
      }
  }

  // Logits of the wanted rows. The head's input is quantised twice, the second time what the first rounded off, and both
  // products are added: its rounding goes straight into every logit, and would be a quarter of the whole pass's KL
  // divergence from exact arithmetic. While memory bounds a step this costs no time.
  void outputs() {
    const Linear& head = s_.w_.head;
    const int n = static_cast<int>(batch_.logits_rows.size());
    const int64_t blocks = head.k() / kernels::kBlock;
    QuantBlock* int8 = s_.int8_.as<QuantBlock>().data();
    Bf16Block* bf16 = s_.bf16_.as<Bf16Block>().data();
    const bool twice = head.needs(Activations::int8);
    rows_ = worker_.share(n);
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const int from = s_.deal_.buffer_row[static_cast<size_t>(batch_.logits_rows[static_cast<size_t>(r)])];
      float* normed = y(static_cast<int>(r));
      s_.ops_.rms_norm(x(from), s_.w_.output_norm.data(), s_.h_.norm_eps, normed, s_.h_.d_model);
      if (head.needs(Activations::bf16)) s_.ops_.round_bf16(normed, head.k(), bf16 + r * blocks);
      if (!twice) continue;
      s_.ops_.quantise(normed, head.k(), int8 + r * blocks);
      s_.ops_.rounding(normed, head.k(), int8 + r * blocks, normed);
      s_.ops_.quantise(normed, head.k(), int8 + (n + r) * blocks);
    }
    worker_.barrier();
    const auto panels = worker_.share(head.panels(), 2);
    const int begin = static_cast<int>(panels.begin), end = static_cast<int>(panels.end);
    float* logits = s_.logits_.as<float>().data();
    head.multiply(s_.ops_, {int8, bf16, y(0), s_.d_columns_}, 0, twice ? 2 * n : n, logits, head.columns(), begin, end);
    if (!twice) return;
    for (int64_t r = 0; r < n; r++)
      s_.ops_.add(logits + r * head.columns() + begin * kLanes, logits + (n + r) * head.columns() + begin * kLanes, (end - begin) * kLanes);
  }

  Step& s_;
  const Batch& batch_;
  KvStore& kv_;
  Worker& worker_;
  Worker::Range rows_{};
};

// ---- the step

int Step::first_split(int row, int layer) const {
  if (!h_.windowed[static_cast<size_t>(layer)]) return 0;
  return std::max(0, deal_.position[static_cast<size_t>(row)] - h_.window + 1) / kSplit;
}
int Step::last_split(int row) const { return deal_.position[static_cast<size_t>(row)] / kSplit + 1; }

void Step::reserve(int rows, int outputs) {
  auto needs = [&](Activations kind) {
    return w_.head.needs(kind) || std::any_of(w_.layers.begin(), w_.layers.end(), [&](const Layer& l) {
             return l.qkv.needs(kind) || l.attn_output.needs(kind) || l.gate_up.needs(kind) || l.ffn_down.needs(kind);
           });
  };
  auto floats = [](Buffer& buffer, int64_t n) {
    if (static_cast<int64_t>(buffer.size()) < n * 4) buffer = Buffer(static_cast<size_t>(n) * 4);
  };
  if (rows > capacity_ || 2 * outputs > capacity_) {  // outputs take two rows of int8
    capacity_ = std::max({rows, 2 * outputs, capacity_, 64});
    floats(x_, int64_t{capacity_} * d_columns_);
    floats(y_, int64_t{capacity_} * d_columns_);
    floats(qkv_, int64_t{capacity_} * qkv_columns_);
    floats(attended_, int64_t{capacity_} * h_.n_heads * h_.head_dim);
    floats(gate_up_, int64_t{capacity_} * gate_columns_);
    if (needs(Activations::int8)) floats(int8_, int64_t{capacity_} * most_blocks_ * static_cast<int64_t>(sizeof(QuantBlock)) / 4);
    if (needs(Activations::bf16)) floats(bf16_, int64_t{capacity_} * most_blocks_ * static_cast<int64_t>(sizeof(Bf16Block)) / 4);
    floats(angles_, int64_t{capacity_} * h_.rope_dims * 2);
  }
  if (outputs > output_capacity_) {
    output_capacity_ = std::max(outputs, 1);
    floats(logits_, int64_t{output_capacity_} * 2 * w_.head.columns());
    if (w_.head.columns() != h_.vocab_size) floats(compact_, int64_t{output_capacity_} * h_.vocab_size);
  }
}

// [row][global cosines, sines, local cosines, sines][rope_dims / 2]
void Step::find_angles(const Batch& batch) {
  const size_t half = static_cast<size_t>(h_.rope_dims / 2);
  for (const BatchSequence& seq : batch.sequences)
    for (int i = 0; i < seq.n_rows; i++) {
      const size_t row = static_cast<size_t>(deal_.buffer_row[static_cast<size_t>(seq.first_row + i)]);
      float* at = angles_.as<float>().data() + row * 4 * half;
      rope_angles(seq.first_position + i, frequencies_, at, at + half);
      if (h_.window > 0) rope_angles(seq.first_position + i, local_frequencies_, at + 2 * half, at + 3 * half);
    }
}

void Step::plan_attention(const Batch& batch, int workers) {
  for (int i = 0; i < h_.n_layers; i++) next_job_[static_cast<size_t>(i)] = 0;
  if (deal_.by_rows) return;
  make_plan(batch, deal_, workers, h_.n_kv_heads, h_.n_heads / h_.n_kv_heads, plan_);
  const size_t floats = static_cast<size_t>(deal_.rows()) * static_cast<size_t>(h_.n_heads) * static_cast<size_t>(plan_.apart) *
                        kernels::attention_state_floats(h_.head_dim);
  if (states_.size() < floats * 4) states_ = Buffer(floats * 4);
}

std::span<const float> Step::run(const Batch& batch, KvStore& kv, ThreadTeam& team) {
  const double row_cost = static_cast<double>(w_.bytes()) / h_.n_layers;  // some 2 operations a byte, at 4 times the rate of f32
  const double position_cost = 4.0 * h_.n_heads * h_.head_dim;
  make_deal(batch, team.size(), tile_tokens_, row_cost, position_cost, deal_);
  const int outputs = static_cast<int>(batch.logits_rows.size());
  reserve(deal_.rows(), outputs);
  find_angles(batch);
  plan_attention(batch, team.size());
  team.run([&](Worker& worker) { Part(*this, batch, kv, worker).run(); });
  const size_t vocab = static_cast<size_t>(h_.vocab_size), columns = static_cast<size_t>(w_.head.columns());
  const float* logits = logits_.as<float>().data();
  if (columns == vocab) return {logits, static_cast<size_t>(outputs) * vocab};
  float* compact = compact_.as<float>().data();
  for (size_t r = 0; r < static_cast<size_t>(outputs); r++) std::memcpy(compact + r * vocab, logits + r * columns, vocab * sizeof(float));
  return {compact, static_cast<size_t>(outputs) * vocab};
}

}  // namespace unisono::model
