#include "model/kv_store.h"

#include <cstring>

#include "base/check.h"
#include "model/batch.h"

namespace unisono::model {

size_t KvStore::block_bytes(KvType type, int n_layers, int n_kv_heads, int head_dim) {
  return static_cast<size_t>(n_layers) * static_cast<size_t>(n_kv_heads) * kernels::kv_bytes(type, head_dim);
}

KvStore::KvStore(KvType type, int n_layers, int n_kv_heads, int head_dim, int n_blocks)
    : type_(type),
      n_layers_(n_layers),
      n_kv_heads_(n_kv_heads),
      n_blocks_(n_blocks),
      head_bytes_(kernels::kv_bytes(type, head_dim)),
      block_bytes_(block_bytes(type, n_layers, n_kv_heads, head_dim)),
      memory_(block_bytes_ * static_cast<size_t>(n_blocks)) {}

std::byte* KvStore::head(int layer, int kv_head) {
  const size_t index = static_cast<size_t>(layer) * static_cast<size_t>(n_kv_heads_) + static_cast<size_t>(kv_head);
  return memory_.data() + index * head_bytes_;
}

void KvStore::copy_block(int from, int to) {
  check(from >= 0 && from < n_blocks_ && to >= 0 && to < n_blocks_, "copy_block: both blocks exist");
  std::memcpy(memory_.data() + block_bytes_ * static_cast<size_t>(to), memory_.data() + block_bytes_ * static_cast<size_t>(from),
              block_bytes_);
}

}  // namespace unisono::model
