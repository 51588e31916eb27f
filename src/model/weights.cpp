#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <span>

#include "base/quoted.h"
#include "kernels/quant.h"

namespace unisono::model {

namespace {

// Reads tensors by name; keeps the first error, so that binding reads as a list.
class Binder {
 public:
  explicit Binder(const TensorSource& source) : source_(source) {}

  TensorView matrix(const std::string& name, int64_t n, int64_t k) {
    const TensorView* view = need(name);
    if (view == nullptr) return {};
    keep(expect_shape(name, *view, {n, k}));
    return *view;
  }
  // A matrix of one row, which some files have as a vector.
  TensorView row(const std::string& name, int64_t k) {
    const TensorView* view = need(name);
    if (view == nullptr) return {};
    if (view->n_dims != 1) return matrix(name, 1, k);
    keep(expect_shape(name, *view, {k}));
    return {.type = view->type, .n_dims = 2, .dims = {1, k}, .data = view->data};
  }
  // The matrices [n][k] of `count` experts, one after another in one tensor, as views of each.
  std::vector<TensorView> matrices(const std::string& name, int count, int64_t n, int64_t k) {
    const TensorView* view = need(name);
    if (view == nullptr || !keep(expect_shape(name, *view, {count, n, k}))) return {};
    std::vector<TensorView> out(static_cast<size_t>(count), TensorView{.type = view->type, .n_dims = 2, .dims = {n, k}});
    for (size_t i = 0; i < out.size(); i++) out[i].data = view->data + i * out[i].bytes();
    return out;
  }
  std::vector<float> vector(const std::string& name, int64_t n) {
    const TensorView* view = need(name);
    if (view == nullptr) return {};
    if (!keep(expect_shape(name, *view, {n}))) return {};
    std::vector<float> out(static_cast<size_t>(n));
    kernels::dequantise_row(view->type, view->data, n, out.data());
    return out;
  }
  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  // To be called last: what the file has and nobody asked for would be missing from the sums.
  void refuse_unread(const Arch& arch) {
    for (const std::string_view name : source_.names()) {
      if (read_.contains(name) || is_beside_text(name)) continue;
      keep(Error{"The file has the tensor " + quoted(name) + ", which is not supported in the family '" +
                     std::string(arch.gguf_name) + "': answers without it would be wrong.",
                 std::string(name)});
    }
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const TensorView* need(const std::string& name) {
    const TensorView* view = source_.find(name);
    read_.insert(name);
    if (view == nullptr) keep(Error{"The file has no tensor '" + name + "', which a model of this family needs.", name});
    return view;
  }
  bool keep(const Result<void>& result) {
    if (!result.ok() && !error_) error_ = result.error();
    return result.ok();
  }
  // Of a model's eyes and ears, which text goes without, and the frequencies of rotations, which are computed.
  static bool is_beside_text(std::string_view name) {
    return name.starts_with("v.") || name.starts_with("a.") || name.starts_with("mm.") ||
           name.find(".attn_rot_embd") != std::string_view::npos;
  }

  const TensorSource& source_;
  std::set<std::string, std::less<>> read_{};
  std::optional<Error> error_{};
};

// Rows of q or k in the order of rotary halves: pairs (2i, 2i + 1) of a head become (i, i + dims/2). Then one rotation
// serves both styles; a dot of q and k doesn't mind, as both are reordered alike.
std::vector<int32_t> halves_order(int heads, int head_dim, int rope_dims) {
  std::vector<int32_t> order;
  for (int h = 0; h < heads; h++)
    for (int i = 0; i < head_dim; i++) {
      const int half = rope_dims / 2;
      const int from = i >= rope_dims ? i : i < half ? 2 * i : 2 * (i - half) + 1;
      order.push_back(h * head_dim + from);
    }
  return order;
}

void put_reordered(std::span<const float> values, const std::vector<int32_t>& order, float* out) {
  for (size_t i = 0; i < values.size(); i++) out[i] = values[order.empty() ? i : static_cast<size_t>(order[i])];
}

// The experts of a mixture. F16 weights are packed as BF16 only where those of all are exact in it: a row's input is
// prepared once for all its experts.
void bind_experts(Binder& bind, const Hparams& h, const std::string& at, Activations dial, Layer& layer) {
  const TensorView router = bind.matrix(at + "ffn_gate_inp.weight", h.n_experts, h.d_model);
  const auto gates = bind.matrices(at + "ffn_gate_exps.weight", h.n_experts, h.d_ff, h.d_model);
  const auto ups = bind.matrices(at + "ffn_up_exps.weight", h.n_experts, h.d_ff, h.d_model);
  const auto downs = bind.matrices(at + "ffn_down_exps.weight", h.n_experts, h.d_model, h.d_ff);
  if (bind.error()) return;
  const auto packed = [&](const std::vector<TensorView>& views) {
    TensorView all = views.front();
    all.dims[0] *= static_cast<int64_t>(views.size());
    return packed_type(all, dial);
  };
  const DType gate = packed(gates), up = packed(ups), down = packed(downs);
  std::vector<Linear::Part> scores = {{"router", router, {}}};
  for (size_t i = 0; i < gates.size(); i++)
    layer.experts.push_back({Linear({{"gate", gates[i], {}, gate}, {"up", ups[i], {}, up}}, dial),
                             Linear({{"down", downs[i], {}, down}}, dial)});
  if (h.shared_ff > 0) {
    const TensorView own_gate = bind.row(at + "ffn_gate_inp_shexp.weight", h.d_model);
    const TensorView own[] = {bind.matrix(at + "ffn_gate_shexp.weight", h.shared_ff, h.d_model),
                              bind.matrix(at + "ffn_up_shexp.weight", h.shared_ff, h.d_model),
                              bind.matrix(at + "ffn_down_shexp.weight", h.d_model, h.shared_ff)};
    if (bind.error()) return;
    scores.push_back({"shared", own_gate, {}});
    layer.experts.push_back({Linear({{"gate", own[0], {}}, {"up", own[1], {}}}, dial), Linear({{"down", own[2], {}}}, dial)});
  }
  layer.router = Linear(std::move(scores), Activations::f32);
}

void bind_feed_forward(Binder& bind, const Hparams& h, const std::string& at, Activations dial, Layer& layer) {
  const TensorView gate = bind.matrix(at + "ffn_gate.weight", h.d_ff, h.d_model);
  const TensorView up = bind.matrix(at + "ffn_up.weight", h.d_ff, h.d_model);
  const TensorView down = bind.matrix(at + "ffn_down.weight", h.d_model, h.d_ff);
  if (bind.error()) return;
  layer.gate_up = Linear({{"gate", gate, {}}, {"up", up, {}}}, dial);
  layer.ffn_down = Linear({{"down", down, {}}}, dial);
}

Layer bind_layer(Binder& bind, const Arch& arch, const Hparams& h, int index, Activations dial) {
  const std::string at = "blk." + std::to_string(index) + ".";
  const int q = h.n_heads * h.head_dim, kv = h.n_kv_heads * h.head_dim;
  std::vector<int32_t> q_order, k_order;
  if (arch.rope == RopeStyle::interleaved) {
    q_order = halves_order(h.n_heads, h.head_dim, h.rope_dims);
    k_order = halves_order(h.n_kv_heads, h.head_dim, h.rope_dims);
  }
  Layer layer;
  layer.attn_norm = bind.vector(at + "attn_norm.weight", h.d_model);
  const TensorView wq = bind.matrix(at + "attn_q.weight", q, h.d_model);
  const TensorView wk = bind.matrix(at + "attn_k.weight", kv, h.d_model);
  const TensorView wv = bind.matrix(at + "attn_v.weight", kv, h.d_model);
  const TensorView wo = bind.matrix(at + "attn_output.weight", h.d_model, q);
  layer.ffn_norm = bind.vector(at + "ffn_norm.weight", h.d_model);
  if (h.n_experts > 0) {
    bind_experts(bind, h, at, dial, layer);
  } else {
    bind_feed_forward(bind, h, at, dial, layer);
  }
  if (arch.post_norms) {
    layer.post_attn_norm = bind.vector(at + "post_attention_norm.weight", h.d_model);
    layer.post_ffn_norm = bind.vector(at + "post_ffw_norm.weight", h.d_model);
  }
  std::vector<float> q_norm, k_norm, q_bias, k_bias, v_bias;
  if (arch.qk_norm) {
    q_norm = bind.vector(at + "attn_q_norm.weight", h.head_dim);
    k_norm = bind.vector(at + "attn_k_norm.weight", h.head_dim);
  }
  const bool bias = arch.qkv_bias || bind.has(at + "attn_q.bias");  // some models of an unbiased family have them
  if (bias) {
    q_bias = bind.vector(at + "attn_q.bias", q);
    k_bias = bind.vector(at + "attn_k.bias", kv);
    v_bias = bind.vector(at + "attn_v.bias", kv);
  }
  if (bind.error()) return layer;

  layer.qkv = Linear({{"q", wq, q_order}, {"k", wk, k_order}, {"v", wv, {}}}, dial);
  layer.attn_output = Linear({{"o", wo, {}}}, dial);
  if (arch.qk_norm) {
    const auto order = arch.rope == RopeStyle::interleaved ? halves_order(1, h.head_dim, h.rope_dims) : std::vector<int32_t>{};
    layer.q_norm.resize(q_norm.size());
    layer.k_norm.resize(k_norm.size());
    put_reordered(q_norm, order, layer.q_norm.data());
    put_reordered(k_norm, order, layer.k_norm.data());
  }
  if (bias) {
    layer.qkv_bias.resize(static_cast<size_t>(layer.qkv.columns()));
    put_reordered(q_bias, q_order, layer.qkv_bias.data() + layer.qkv.first_column(0));
    put_reordered(k_bias, k_order, layer.qkv_bias.data() + layer.qkv.first_column(1));
    put_reordered(v_bias, {}, layer.qkv_bias.data() + layer.qkv.first_column(2));
  }
  return layer;
}

// Panels that one thread packs: neighbours, so that it writes a stretch of memory, not single lines among another's.
struct PackJob {
  size_t linear;
  int begin, end;
};

// What is packed of the file leaves memory at once, so that weights are never there twice.
void pack_all(Weights& w, const TensorSource& source, ThreadTeam& team, void (*progress)(void*, size_t, size_t), void* context) {
  constexpr int kSome = 16;
  std::vector<Linear*> linears;
  std::vector<PackJob> jobs;
  auto add = [&](Linear& linear) {
    for (int p = 0; p < linear.panels(); p += kSome) jobs.push_back({linears.size(), p, std::min(p + kSome, linear.panels())});
    linears.push_back(&linear);
  };
  each_linear(w, add);
  add(w.embedding);
  std::vector<std::atomic<int>> left(linears.size());  // panels to pack
  for (size_t i = 0; i < linears.size(); i++) left[i] = linears[i]->panels();
  const size_t total = w.bytes() + w.embedding.bytes();
  w.memory = Buffer(total);
  w.memory.interleave(team.nodes());  // panels are dealt anew each time: every worker reads all of them
  std::byte* memory = w.memory.data();
  for (Linear* linear : linears) {
    linear->place(memory);
    memory += linear->bytes();
  }
  const auto release = [&](std::span<const std::byte> bytes) { source.release(bytes); };
  std::atomic<size_t> next = 0;
  team.run([&](Worker& worker) {
    for (size_t at; (at = next.fetch_add(1)) < jobs.size();) {
      const PackJob& job = jobs[at];
      Linear& linear = *linears[job.linear];
      for (int p = job.begin; p < job.end; p++) linear.pack(p);
      linear.each_source(job.begin, job.end, release);
      const int done = job.end - job.begin;
      if (left[job.linear].fetch_sub(done) == done) linear.each_source(0, linear.panels(), release);  // rows in other orders, borders
      if (worker.index() == 0 && progress != nullptr)
        progress(context, static_cast<size_t>(static_cast<double>(total) * static_cast<double>(at) / static_cast<double>(jobs.size())), total);
    }
  });
  if (progress != nullptr) progress(context, total, total);
}

}  // namespace

void Weights::embed(int token, float* out) const {
  (embedding.panels() > 0 ? embedding : head).row(token, out);
}

size_t Weights::bytes() const {
  size_t sum = 0;
  each_linear(*this, [&](const Linear& linear) { sum += linear.bytes(); });
  return sum;
}

Activations Weights::activations() const {
  const auto bytes_with = [&](Activations kind) {
    size_t sum = 0;
    each_linear(*this, [&](const Linear& linear) { sum += linear.bytes(kind); });
    return sum;
  };
  return std::ranges::max({Activations::int8, Activations::bf16, Activations::f32}, {}, bytes_with);
}

// Multiply-adds of the layers' products by those of attention to one position, which are done at half the rate of int8.
int Weights::attention_unit(const Hparams& h, int experts) const {
  const auto of = [](const Linear& linear) { return int64_t{linear.k()} * linear.columns(); };
  int64_t products = 0;
  for (const Layer& l : layers) {
    products += of(l.qkv) + of(l.attn_output) + of(l.gate_up) + of(l.ffn_down) + of(l.router);
    if (l.experts.empty()) continue;
    products += experts * (of(l.experts.front().gate_up) + of(l.experts.front().down));
    if (h.shared_ff > 0) products += of(l.experts.back().gate_up) + of(l.experts.back().down);
  }
  const int64_t unbounded = std::max<int64_t>(1, std::ranges::count(h.windowed, 0));
  const int64_t position = 2 * unbounded * h.n_heads * h.head_dim * (activations() == Activations::int8 ? 2 : 1);
  return static_cast<int>(std::clamp<int64_t>(products / position, 1, 1 << 30));
}

Result<Weights> load_weights(const Arch& arch, const Hparams& h, const TensorSource& source, Activations dial,
                             ThreadTeam& team, void (*progress)(void*, size_t, size_t), void* progress_context) {
  Binder bind(source);
  Weights w;
  TensorView head = bind.matrix("token_embd.weight", h.vocab_size, h.d_model);
  w.output_norm = bind.vector("output_norm.weight", h.d_model);
  if (bind.has("output.weight")) {
    w.embedding = Linear({{"embedding", head, {}, head.type}}, dial);  // looked up only: no other type is faster
    head = bind.matrix("output.weight", h.vocab_size, h.d_model);
  }
  if (bind.has("rope_freqs.weight")) w.rope_factors = bind.vector("rope_freqs.weight", h.rope_dims / 2);
  for (int i = 0; i < h.n_layers && !bind.error(); i++) w.layers.push_back(bind_layer(bind, arch, h, i, dial));
  bind.refuse_unread(arch);
  if (bind.error()) return *bind.error();
  w.head = Linear({{"head", head, {}}}, dial);
  pack_all(w, source, team, progress, progress_context);
  return w;
}

}  // namespace unisono::model
