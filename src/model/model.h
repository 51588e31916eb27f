// A model ready to run: one forward pass for all families, over flat batches and paged blocks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "model/arch.h"
#include "model/batch.h"
#include "model/kv_store.h"

namespace unisono::model {

// Part of a model's identity: raised by every change to kernels or the forward pass that changes any bit of a result.
inline constexpr int kNumericsVersion = 4;

// What activations are rounded to before a product: the dial between speed and fidelity. A weight keeps all its digits in
// each. BF16 weights, and F16 weights that are exact in BF16, have no int8 product: with int8 they take bf16.
enum class Activations : uint8_t { int8, bf16, f32 };

struct ModelOptions {
  Activations activations = Activations::int8;
  const kernels::Ops* ops = nullptr;  // null: the best that runs here
};

// Where the weights come from: engine/load gives a lookup into the open checkpoint.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const TensorView* find(std::string_view name) const = 0;  // null: absent
  // Of all tensors there are, so that none is passed over in silence; a source that can't tell gives none.
  virtual std::vector<std::string_view> names() const { return {}; }
  // These bytes of a tensor are packed: their memory may go until they are read again. By any thread.
  virtual void release(std::span<const std::byte>) const {}
};

class Model {
 public:
  // Binds and packs the weights with all threads of `team`. Refused with a sentence: a missing tensor, a wrong shape or
  // type, a tensor that the family has no use for here. progress, if given, is called from the calling thread with (done,
  // total) bytes.
  static Result<Model> load(const Arch& arch, const Hparams& hparams, const TensorSource& source, const ModelOptions& options,
                            ThreadTeam& team, void (*progress)(void*, size_t, size_t) = nullptr, void* progress_context = nullptr);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Hparams& hparams() const;
  size_t weight_bytes() const;  // of the weights that are multiplied
  const kernels::Ops& ops() const;
  Activations activations() const;  // that most of the weights are multiplied with, by their bytes
  // Of the weights that the last step read: all but those of experts that no row chose.
  size_t weight_bytes_read() const;
  // About how many positions of context take a token as long to attend to as all the rest of it takes: for who plans steps.
  int attention_unit() const;

  // One step: writes the batch's keys and values into `kv` and returns logits [logits_rows][vocab], valid until the next
  // call. A row's bits depend on its sequence's tokens up to it and on nothing else: not on the other sequences, on how
  // the tokens were cut into steps, on the number of threads, or on the CPU. One call at a time.
  std::span<const float> forward(const Batch& batch, KvStore& kv, ThreadTeam& team);

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono::model
