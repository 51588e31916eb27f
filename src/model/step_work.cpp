// One worker's way through a step. The rest of Step is in step.cpp.
#include "model/step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace unisono::model {

using kernels::Bf16Block;
using kernels::kSplit;
using kernels::QuantBlock;

namespace {
constexpr int kStretch = 128;  // rows a worker takes through a layer's products together
}  // namespace

class Step::Part {
 public:
  Part(Step& step, KvStore& kv, const SharedCache& cache, Worker& worker)
      : s_(step), kv_(kv), worker_(worker), hand_(step.panel_deal_, worker), fetcher_(cache, worker) {
    enter(step.all_);
  }

  void run() {
    embed();
    for (int i = 0; i < s_.h_.n_layers; i++) layer(i);
    if (!s_.few_) worker_.barrier();  // the outputs' rows may be another worker's
    outputs();
  }

 private:
  const Deal& deal() const { return stage_->deal; }
  void enter(const Stage& stage) {
    stage_ = &stage;
    const auto w = static_cast<size_t>(worker_.index());
    rows_ = worker_.share(deal().rows());
    if (deal().by_rows) rows_ = {deal().first_row[w], deal().first_row[w + 1]};
    if (s_.few_) {
      rows_ = {0, deal().rows()};
      first_own_ = worker_.index() * deal().rows();
    }
  }
  // Between a product, whose panels all share, and what is done to rows. Workers that keep their rows have nothing to wait for.
  void meet() {
    if (!deal().by_rows) worker_.barrier();
  }
  // Before a product: the activations of all rows must be there. Who has prepared all of them itself doesn't wait.
  void meet_prepared() {
    if (!deal().by_rows && !s_.few_) worker_.barrier();
  }
  // Rows that are a worker's own where each has all of them.
  size_t own(int row) const { return static_cast<size_t>(first_own_ + row); }
  float* x(int row) { return s_.x_.as<float>().data() + own(stage_->at(row)) * static_cast<size_t>(s_.d_columns_); }
  float* normed(int row) {
    return s_.few_ ? s_.normed_.as<float>().data() + own(row) * static_cast<size_t>(s_.d_columns_) : y(row);
  }
  float* gated(int row) {
    return s_.few_ ? s_.gated_.as<float>().data() + own(row) * static_cast<size_t>(s_.gate_columns_) : gate_up(row);
  }
  // Products' results, which all workers write and read.
  float* y(int row) { return s_.y_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.d_columns_); }
  float* qkv(int row) {
    return s_.qkv_.as<float>().data() + static_cast<size_t>(stage_->at(row)) * static_cast<size_t>(s_.qkv_columns_);
  }
  float* gate_up(int row) { return s_.gate_up_.as<float>().data() + static_cast<size_t>(row) * static_cast<size_t>(s_.gate_columns_); }
  float* attended(int row) {
    const size_t at = s_.few_ && plan_->apart > 0 ? own(row) : static_cast<size_t>(row);  // each folds for itself
    return s_.attended_.as<float>().data() + at * static_cast<size_t>(s_.h_.n_heads * s_.h_.head_dim);
  }

  // Where row 0 of rounded activations for `linear` would lie. Rows are as long as its k asks, so workers that keep their
  // rows and may be at different products must not share one numbering: each has the stretch of its own rows.
  template <class Block>
  Block* rounded_rows(Buffer& buffer, const Linear& linear) {
    Block* all = buffer.as<Block>().data();
    if (all == nullptr) return nullptr;  // no product of this model takes them
    if (s_.few_) return all + int64_t{first_own_} * s_.most_blocks_;
    return deal().by_rows ? all + rows_.begin * (s_.most_blocks_ - linear.k() / kernels::kBlock) : all;
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
  // then: the Linear that this worker multiplies next.
  void multiply(const Linear& linear, const float* in, int64_t in_stride, float* out, int64_t out_stride, const Linear& then) {
    const ActivationRows a{int8_rows(linear), bf16_rows(linear), in, in_stride};
    const auto upcoming = [&](const Linear& of, int panel) {
      kernels::Upcoming next = of.upcoming(panel);
      next.later = fetcher_.beside(linear);
      return next;
    };
    if (deal().by_rows) {
      linear.multiply(s_.ops_, a, static_cast<int>(rows_.begin), static_cast<int>(rows_.end - rows_.begin), out, out_stride, 0,
                      linear.panels(), upcoming(then, 0));
      return;
    }
    const int first_of_next = hand_.share(then.panels()).first * PanelDeal::kPair;
    hand_.each_pair(linear.panels(), [&](int panel, int end, int next) {
      linear.multiply(s_.ops_, a, 0, deal().rows(), out, out_stride, panel, end,
                      next < linear.panels() ? upcoming(linear, next) : upcoming(then, first_of_next));
    });
  }
  void embed() {
    const float scale = std::sqrt(static_cast<float>(s_.h_.d_model));  // exactly rounded by IEEE 754
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const int row = static_cast<int>(r);
      const int token = stage_->batch->tokens[static_cast<size_t>(deal().batch_row[static_cast<size_t>(r)])];
      s_.w_.embed(token, x(row));
      if (s_.arch_.scale_embedding) s_.ops_.scale(x(row), scale, s_.h_.d_model);
    }
  }

  void layer(int index) {
    const Layer& l = s_.w_.layers[static_cast<size_t>(index)];
    const bool last = index + 1 == s_.h_.n_layers;
    each_stretch([&] { queries_keys_values(l, index); });
    worker_.barrier();  // keys and values of all rows are there
    if (last && s_.narrows_) enter(s_.wanted_);  // nobody asks what else comes out of the last layer
    if (deal().rows() == 0) return;
    plan_ = kv_.has_window_blocks(index) ? &stage_->window_plan : &stage_->plan;
    attention(l, index);
    if (!last) fetch_ahead(index + 1);
    meet();
    const Linear& then = last ? s_.w_.head : s_.w_.layers[static_cast<size_t>(index) + 1].qkv;
    const bool mixture = !l.experts.empty();
    each_stretch([&] {
      attention_output(l, mixture ? l.router : l.gate_up, index);
      norm_rows(l.ffn_norm);
      mixture ? choose_experts(l) : feed_forward(l, then);
    });
    if (mixture) run_experts(l, then, index);
  }
  // From here on beside the products: what the attention of layer `index` reads.
  void fetch_ahead(int index) {
    const auto i = static_cast<size_t>(index);
    const Stage& stage = index + 1 == s_.h_.n_layers && s_.narrows_ ? s_.wanted_ : *stage_;
    const Layer &l = s_.w_.layers[i - 1], &next = s_.w_.layers[i];
    fetcher_.begin(s_.h_.windowed[i] ? stage.window_ahead : stage.ahead, {&l.attn_output, &l.gate_up, &l.ffn_down, &next.qkv},
                   deal().rows(), view(index, 0), kv_.head_bytes() * static_cast<size_t>(s_.h_.n_kv_heads));
  }
  // Who keeps many rows takes them some at a time, so that what one product gives the next stays in the core's cache.
  template <class Do>
  void each_stretch(Do something) {
    if (!deal().by_rows) return something();
    const auto mine = rows_;
    const int64_t stretches = (mine.end - mine.begin + kStretch - 1) / kStretch;
    for (int64_t i = 0; i < stretches; i++) {
      rows_ = {mine.begin + (mine.end - mine.begin) * i / stretches, mine.begin + (mine.end - mine.begin) * (i + 1) / stretches};
      something();
    }
    rows_ = mine;
  }
  void queries_keys_values(const Layer& l, int index) {
    norm_rows(l.attn_norm);
    prepare(l.qkv, [&](int r) { return normed(r); });
    meet_prepared();
    multiply(l.qkv, normed(0), s_.d_columns_, qkv(0), s_.qkv_columns_, l.attn_output);
    meet();
    rotate_and_store(l, index);
  }
  void attention_output(const Layer& l, const Linear& then, int index) {
    finish_apart(index);
    prepare(l.attn_output, [&](int r) { return attended(r); });
    meet_prepared();
    multiply(l.attn_output, attended(0), s_.h_.n_heads * s_.h_.head_dim, y(0), s_.d_columns_, then);
    meet();
    add_to_residual(l.post_attn_norm, [&](int r) { return y(r); });
  }
  void feed_forward(const Layer& l, const Linear& then) {
    prepare(l.gate_up, [&](int r) { return normed(r); });
    meet_prepared();
    multiply(l.gate_up, normed(0), s_.d_columns_, gate_up(0), s_.gate_columns_, l.ffn_down);
    meet();
    const int up = l.gate_up.first_column(1);
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const float* g = gate_up(static_cast<int>(r));
      s_.ops_.gate(gate_kind(s_.arch_.activation), g, g + up, gated(static_cast<int>(r)), s_.h_.d_ff);
    }
    prepare(l.ffn_down, [&](int r) { return gated(r); });
    meet_prepared();
    multiply(l.ffn_down, gated(0), s_.gate_columns_, y(0), s_.d_columns_, then);
    meet();
    add_to_residual(l.post_ffn_norm, [&](int r) { return y(r); });
  }
  // Which come next isn't known before: nothing is fetched ahead.
  void choose_experts(const Layer& l) {
    meet_prepared();
    multiply(l.router, normed(0), s_.d_columns_, s_.experts_.scores(0), s_.experts_.score_columns(), Linear());
    meet();
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const int row = static_cast<int>(r);
      s_.experts_.choose(worker_.index(), first_own_ + row, s_.experts_.scores(row), normed(row), l);
    }
  }
  // Of all rows, also where workers keep theirs: an expert's weights are read once for all that chose it.
  void run_experts(const Layer& l, const Linear& then, int index) {
    if (!s_.few_) worker_.barrier();  // the choices of all rows are there
    s_.experts_.run(worker_, hand_, l, index, {s_.way(*stage_), deal().rows(), first_own_, normed(0), s_.d_columns_}, then);
    for (int64_t r = rows_.begin; r < rows_.end; r++) {
      const int row = static_cast<int>(r);
      s_.experts_.sum(worker_.index(), row, first_own_ + row, normed(row));
    }
    add_to_residual(l.post_ffn_norm, [&](int r) { return normed(r); });
  }

  void norm_rows(const std::vector<float>& weight) {
    for (int64_t r = rows_.begin; r < rows_.end; r++)
      s_.ops_.rms_norm(x(static_cast<int>(r)), weight.data(), s_.h_.norm_eps, normed(static_cast<int>(r)), s_.h_.d_model);
  }
  // x += what is at more_of(row), normed first where the family has a norm there.
  template <class MoreOf>
  void add_to_residual(const std::vector<float>& post_norm, MoreOf more_of) {
    for (int64_t row = rows_.begin; row < rows_.end; row++) {
      const int r = static_cast<int>(row);
      const float* more = more_of(r);
      if (!post_norm.empty()) {
        s_.ops_.rms_norm(more, post_norm.data(), s_.h_.norm_eps, normed(r), s_.h_.d_model);
        more = normed(r);
      }
      s_.ops_.add(x(r), more, s_.h_.d_model);
    }
  }

  // q, k and v of rows: biases, norms, rotation; q scaled; k and v into the store. Rows that all have are shared by heads.
  void rotate_and_store(const Layer& l, int index) {
    const int64_t heads = s_.h_.n_heads + s_.h_.n_kv_heads;
    const auto mine = s_.few_ ? worker_.share(deal().rows() * heads) : Worker::Range{rows_.begin * heads, rows_.end * heads};
    for (int64_t i = mine.begin; i < mine.end; i++) rotate_head(l, index, static_cast<int>(i / heads), static_cast<int>(i % heads));
  }
  // Head i: a query head, or behind those a key head with its values.
  void rotate_head(const Layer& l, int index, int row, int i) {
    const Hparams& h = s_.h_;
    const bool query = i < h.n_heads;
    const int kv_head = i - h.n_heads;
    float* at = qkv(row) + (query ? l.qkv.first_column(0) + i * h.head_dim : l.qkv.first_column(1) + kv_head * h.head_dim);
    float* v = query ? nullptr : qkv(row) + l.qkv.first_column(2) + kv_head * h.head_dim;
    for (float* part : {at, v})
      if (part != nullptr && !l.qkv_bias.empty()) s_.ops_.add(part, l.qkv_bias.data() + (part - qkv(row)), h.head_dim);
    const std::vector<float>& norm = query ? l.q_norm : l.k_norm;
    if (!norm.empty()) s_.ops_.rms_norm(at, norm.data(), h.norm_eps, at, h.head_dim);
    const bool local = h.windowed[static_cast<size_t>(index)] != 0;
    const size_t half = static_cast<size_t>(h.rope_dims / 2);
    const float* cosines = s_.angles_.as<float>().data() + static_cast<size_t>(row) * 4 * half + (local ? 2 * half : 0);
    s_.ops_.rope(at, cosines, cosines + half, h.rope_dims);
    if (query) {
      s_.ops_.scale(at, h.attention_scale, h.head_dim);
      return;
    }
    const int position = deal().position[static_cast<size_t>(row)];
    const int block = table(row, index)[static_cast<size_t>(position / kBlockTokens)];
    s_.ops_.store_kv(view(index, kv_head), block, position % kBlockTokens, at, v);
  }
  std::span<const int32_t> table(int row, int layer) const {
    const BatchSequence& sequence = stage_->batch->sequences[static_cast<size_t>(deal().sequence[static_cast<size_t>(row)])];
    return kv_.has_window_blocks(layer) ? sequence.window_table : sequence.block_table;
  }
  kernels::KvView view(int layer, int kv_head) const {
    return {kv_.head(layer, kv_head), kv_.stride(layer), s_.h_.head_dim, kv_.type()};
  }

  // Threads that keep their rows take their own tiles; else all take jobs as they get free.
  void attention(const Layer& l, int index) {
    if (deal().by_rows) {
      const auto w = static_cast<size_t>(worker_.index());
      int rows[kernels::kMaxQueries];
      const int begin = deal().first_tile[w], end = deal().first_tile[w + 1];
      for (int kv_head = 0; kv_head < s_.h_.n_kv_heads; kv_head++)
        for (int t = begin; t < end; t++) {
          const Tile& tile = deal().tiles[static_cast<size_t>(t)];
          std::iota(rows, rows + tile.tokens, tile.row);
          const int next = t + 1 < end ? t + 1 : begin, next_head = t + 1 < end ? kv_head : kv_head + 1;
          const int next_row = deal().tiles[static_cast<size_t>(next)].row;
          whole(l, index, {rows, static_cast<size_t>(tile.tokens)}, kv_head,
                first_blocks(next_row, index, next_head, first_split(next_row, index)));
        }
      return;
    }
    const int n = static_cast<int>(plan_->jobs.size());
    for (int at; (at = s_.next_job_[static_cast<size_t>(index)].fetch_add(1)) < n;) {
      const AttentionJob& job = plan_->jobs[static_cast<size_t>(at)];
      const auto rows = std::span<const int>(plan_->rows).subspan(static_cast<size_t>(job.first_row), static_cast<size_t>(job.n_rows));
      // Workers take jobs in turn, most of the time.
      Blocks then{};
      if (const int next = at + worker_.count(); next < n) {
        const AttentionJob& after = plan_->jobs[static_cast<size_t>(next)];
        const int row = plan_->rows[static_cast<size_t>(after.first_row)];
        then = first_blocks(row, index, after.kv_head, std::max(after.begin, first_split(row, index)));
      }
      if (plan_->apart == 0) {
        whole(l, index, rows, job.kv_head, then);
      } else {
        apart(l, index, rows, job, then);
      }
    }
  }
  // The first blocks that a row's attention reads from a split on; none of a head that isn't there.
  using Blocks = std::array<const std::byte*, kernels::kBlocksAhead>;
  Blocks first_blocks(int row, int index, int kv_head, int split) const {
    Blocks blocks{};
    if (kv_head == s_.h_.n_kv_heads) return blocks;
    const kernels::KvView kv = view(index, kv_head);
    const auto all = table(row, index);
    // Blocks behind the row's window aren't read, and may be gone.
    const int first = std::max(split * kSplit, first_position(row, index)) / kBlockTokens;
    const int last = deal().position[static_cast<size_t>(row)] / kBlockTokens;
    for (int i = 0; i < kernels::kBlocksAhead && first + i <= last; i++)
      blocks[static_cast<size_t>(i)] = kv.base + kv.stride * static_cast<size_t>(all[static_cast<size_t>(first + i)]);
    return blocks;
  }
  // The rows' queries against a kv head, over splits [begin, end) of the blocks of the first row's sequence. states_of(i):
  // where those of row i of `rows` go, `head_stride` floats a head. then: what this worker probably reads next.
  template <class StatesOf>
  void attend(const Layer& l, int index, std::span<const int> rows, int kv_head, int begin, int end, const Blocks& then, bool fold,
              size_t head_stride, StatesOf states_of) {
    const int group = s_.h_.n_heads / s_.h_.n_kv_heads;
    const int first_query = l.qkv.first_column(0) + kv_head * group * s_.h_.head_dim;
    kernels::AttentionToken tokens[kernels::kMaxQueries];
    for (size_t i = 0; i < rows.size(); i++)
      tokens[i] = {qkv(rows[i]) + first_query, states_of(i), deal().position[static_cast<size_t>(rows[i])]};
    kernels::AttentionItem item{.tokens = tokens,
                                .n_tokens = static_cast<int>(rows.size()),
                                .group = group,
                                .head_stride = head_stride,
                                .window = s_.h_.windowed[static_cast<size_t>(index)] ? s_.h_.window : 0,
                                .blocks = table(rows[0], index).data(),
                                .kv = view(index, kv_head)};
    std::copy(then.begin(), then.end(), item.then);
    s_.ops_.attend(item, begin, end, fold);
  }
  // All of the context of consecutive rows of a sequence, folded as it goes.
  void whole(const Layer& l, int index, std::span<const int> rows, int kv_head, const Blocks& then) {
    const int dims = s_.h_.head_dim, group = s_.h_.n_heads / s_.h_.n_kv_heads;
    const size_t floats = kernels::attention_state_floats(dims), queries = rows.size() * static_cast<size_t>(group);
    alignas(64) float states[kernels::kMaxQueries * kernels::attention_state_floats(kernels::kMaxHeadDim)];
    attend(l, index, rows, kv_head, first_split(rows.front(), index), last_split(rows.back()), then, true, floats,
           [&](size_t i) { return states + floats * i * static_cast<size_t>(group); });
    for (size_t r = 0; r < queries; r++) {
      const int head = kv_head * group + static_cast<int>(r) % group;
      s_.ops_.attention_finish(states + floats * r, attended(rows[r / static_cast<size_t>(group)]) + head * dims, dims);
    }
  }
  // Some splits, their states kept for finish_apart().
  void apart(const Layer& l, int index, std::span<const int> rows, const AttentionJob& job, const Blocks& then) {
    int begin = job.end;
    for (const int row : rows) begin = std::min(begin, std::max(job.begin, first_split(row, index)));
    if (begin == job.end) return;  // behind the window of all of them
    attend(l, index, rows, job.kv_head, begin, job.end, then, false, kept_stride(),
           [&](size_t i) { return kept(rows[i], job.kv_head * (s_.h_.n_heads / s_.h_.n_kv_heads), begin); });
  }
  // [row][head][split][state]
  size_t kept_stride() const { return static_cast<size_t>(plan_->apart) * kernels::attention_state_floats(s_.h_.head_dim); }
  float* kept(int row, int head, int split) {
    const auto query = static_cast<size_t>(row * s_.h_.n_heads + head);
    return s_.states_.as<float>().data() + query * kept_stride() + static_cast<size_t>(split) * kernels::attention_state_floats(s_.h_.head_dim);
  }
  void finish_apart(int index) {
    if (deal().by_rows || plan_->apart == 0) return;
    const int dims = s_.h_.head_dim;
    alignas(64) float state[kernels::attention_state_floats(kernels::kMaxHeadDim)];
    for (int row = static_cast<int>(rows_.begin); row < static_cast<int>(rows_.end); row++)
      for (int head = 0; head < s_.h_.n_heads; head++) {
        kernels::attention_begin(state, dims);
        for (int split = first_split(row, index); split < last_split(row); split++)
          s_.ops_.attention_fold(state, kept(row, head, split), dims);
        s_.ops_.attention_finish(state, attended(row) + head * dims, dims);
      }
  }

  int first_position(int row, int layer) const {  // that the row sees
    if (!s_.h_.windowed[static_cast<size_t>(layer)]) return 0;
    return std::max(0, deal().position[static_cast<size_t>(row)] - s_.h_.window + 1);
  }
  int first_split(int row, int layer) const { return first_position(row, layer) / kSplit; }
  int last_split(int row) const { return deal().position[static_cast<size_t>(row)] / kSplit + 1; }  // behind the last

  void outputs() {
    s_.head_.run(worker_, hand_, static_cast<int>(stage_->batch->logits_rows.size()), [&](int i) {
      return x(deal().buffer_row[static_cast<size_t>(stage_->batch->logits_rows[static_cast<size_t>(i)])]);
    });
  }

  Step& s_;
  KvStore& kv_;
  Worker& worker_;
  const Stage* stage_ = nullptr;
  Worker::Range rows_{};
  const AttentionPlan* plan_ = nullptr;  // of the layer at hand
  int first_own_ = 0;  // where each has all rows: of mine, in buffers that hold everybody's
  PanelDeal::Hand hand_;
  KvFetcher fetcher_;
};

void Step::work(KvStore& kv, const SharedCache& cache, Worker& worker) { Part(*this, kv, cache, worker).run(); }

}  // namespace unisono::model
