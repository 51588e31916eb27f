// Keys and values on their way: while a layer's products compute, the memory that they leave idle fetches what the next layer's
// attention will read, into the last-level cache. Decides only what is fetched when, never a result's bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "kernels/ops.h"
#include "model/batch.h"
#include "model/deal.h"
#include "model/linear.h"
#include "model/shared_prefixes.h"

namespace unisono::model {

// The blocks that each worker fetches of a step: together those that some row sees and that were written before, each once.
struct KvAhead {
  std::vector<int32_t> blocks{};  // worker w's are [first[w], first[w + 1])
  std::vector<int> first{};       // [workers + 1]

  std::span<const int32_t> of(int worker) const {
    const auto w = static_cast<size_t>(worker);
    return std::span(blocks).subspan(static_cast<size_t>(first[w]), static_cast<size_t>(first[w + 1] - first[w]));
  }
};

// window: positions that a row sees; 0: all. window_table: the layers go by that table. Reuses the memory of `ahead`.
void plan_kv_ahead(const Batch& batch, const SharedPrefixes& prefixes, const Deal& deal, int workers, int window, bool window_table,
                   KvAhead& ahead);

// How much is fetched during how many of the products before an attention.
struct FetchShare {
  size_t products = 0;  // the last ones
  double part = 0;      // of all there is to fetch
  double pace = 0;      // bytes for each multiply-add of these products

  // products: in their order, each for `rows` rows. bytes: of keys and values. cache: they and the weights that pass by after
  // them must fit.
  static FetchShare of(std::span<const Linear* const> products, int64_t rows, size_t bytes, size_t cache);
};

// One worker's side of it, during a step.
class KvFetcher {
 public:
  static constexpr size_t kProducts = 4;  // before an attention: of the layer before its output, gate and up, down; and qkv

  KvFetcher(const SharedCache& cache, const Worker& worker) : cache_(cache), worker_(worker) {}

  // From now on, beside those of `products` that have the time: what `ahead` says of a layer's blocks, which lie at `kv`, its
  // first head, with so many bytes each over all heads. rows: of each product, over all workers.
  void begin(const KvAhead& ahead, const std::array<const Linear*, kProducts>& products, int64_t rows, const kernels::KvView& kv,
             size_t block_bytes);
  // What is fetched beside `linear`; null: nothing.
  kernels::Later* beside(const Linear& linear);

 private:
  const SharedCache& cache_;
  const Worker& worker_;
  std::array<const Linear*, kProducts> products_{};  // that fetch
  kernels::Later later_{};
};

}  // namespace unisono::model
