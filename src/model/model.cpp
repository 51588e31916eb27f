#include "model/model.h"

#include <algorithm>

#include "base/check.h"
#include "model/step.h"
#include "model/weights.h"

namespace unisono::model {

struct Model::Impl {
  Impl(const Arch& arch, const Hparams& h, Weights w, const kernels::Ops& ops)
      : hparams(h), weights(std::move(w)), ops(ops), step(arch, hparams, weights, ops) {}
  Hparams hparams;
  Weights weights;
  const kernels::Ops& ops;
  Step step;
};

Result<Model> Model::load(const Arch& arch, const Hparams& hparams, const TensorSource& source, const ModelOptions& options,
                          ThreadTeam& team, void (*progress)(void*, size_t, size_t), void* progress_context) {
  const int group = hparams.n_heads / hparams.n_kv_heads;
  if (group > kernels::kMaxQueries || hparams.head_dim > kernels::kMaxHeadDim)
    return Error{"The model has heads of " + std::to_string(hparams.head_dim) + " dimensions in groups of " +
                     std::to_string(group) + "; at most " + std::to_string(kernels::kMaxHeadDim) + " and " +
                     std::to_string(kernels::kMaxQueries) + " are supported.",
                 "attention.key_length"};
  auto weights = load_weights(arch, hparams, source, options.activations, team, progress, progress_context);
  if (!weights) return weights.error();
  const kernels::Ops& ops = options.ops != nullptr ? *options.ops : kernels::best_ops();
  return Model(std::make_unique<Impl>(arch, hparams, std::move(*weights), ops));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const Hparams& Model::hparams() const { return impl_->hparams; }
size_t Model::weight_bytes() const { return impl_->weights.bytes(); }
const kernels::Ops& Model::ops() const { return impl_->ops; }
Activations Model::activations() const {
  const auto bytes = [&](Activations kind) {
    size_t sum = 0;
    each_linear(impl_->weights, [&](const Linear& linear) { sum += linear.bytes(kind); });
    return sum;
  };
  return std::ranges::max({Activations::int8, Activations::bf16, Activations::f32}, {}, bytes);
}
// Multiply-adds of a layer's products by those of attention to one position, which are done at half the rate of int8.
int Model::attention_unit() const {
  const Hparams& h = impl_->hparams;
  int64_t products = 0;
  for (const Layer& l : impl_->weights.layers)
    for (const Linear* linear : {&l.qkv, &l.attn_output, &l.gate_up, &l.ffn_down})
      products += int64_t{linear->k()} * linear->columns();
  const int64_t unbounded = std::max<int64_t>(1, std::ranges::count(h.windowed, 0));
  const int64_t position = 2 * unbounded * h.n_heads * h.head_dim * (activations() == Activations::int8 ? 2 : 1);
  return static_cast<int>(std::clamp<int64_t>(products / position, 1, 1 << 30));
}

std::span<const float> Model::forward(const Batch& batch, KvStore& kv, ThreadTeam& team) {
  check(!batch.tokens.empty(), "a step has at least one token");
  return impl_->step.run(batch, kv, team);
}

}  // namespace unisono::model
