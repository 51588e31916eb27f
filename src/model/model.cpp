#include "model/model.h"

#include <utility>

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
size_t Model::weight_bytes_read() const { return impl_->step.weight_bytes_read(); }
const kernels::Ops& Model::ops() const { return impl_->ops; }
Activations Model::activations() const { return impl_->weights.activations(); }
int Model::attention_unit() const { return impl_->weights.attention_unit(impl_->hparams, impl_->hparams.n_experts_used); }

std::span<const float> Model::forward(const Batch& batch, KvStore& kv, ThreadTeam& team) {
  check(!batch.tokens.empty(), "a step has at least one token");
  return impl_->step.run(batch, kv, team);
}

}  // namespace unisono::model
