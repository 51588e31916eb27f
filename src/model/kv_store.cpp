#include "model/kv_store.h"

#include <cstring>

#include "base/check.h"
#include "model/batch.h"

namespace unisono::model {

namespace {
size_t bytes_of_head(KvType type, int head_dim) {
  const size_t width = (static_cast<size_t>(head_dim) + 15) / 16 * 16;
  const size_t elements = kBlockTokens * (static_cast<size_t>(head_dim) + width);
  return (elements * (type == KvType::f32 ? 4 : 2) + 63) / 64 * 64;
}
}  // namespace

size_t KvStore::block_bytes(KvType type, int n_layers, int n_kv_heads, int head_dim) {
  return static_cast<size_t>(n_layers) * static_cast<size_t>(n_kv_heads) * bytes_of_head(type, head_dim);
}

KvStore::KvStore(KvType type, int n_layers, int n_kv_heads, int head_dim, int n_blocks)
    : type_(type),
      n_layers_(n_layers),
      n_kv_heads_(n_kv_heads),
      n_blocks_(n_blocks),
      head_bytes_(bytes_of_head(type, head_dim)),
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
