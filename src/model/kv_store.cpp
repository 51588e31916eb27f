#include "model/kv_store.h"

#include <cstring>

#include "base/check.h"

namespace unisono::model {

size_t KvStore::block_bytes(KvType type, int n_layers, int n_kv_heads, int head_dim) {
  return static_cast<size_t>(n_layers) * static_cast<size_t>(n_kv_heads) * kernels::kv_bytes(type, head_dim);
}

KvStore::KvStore(KvType type, int n_layers, int n_kv_heads, int head_dim, int n_blocks)
    : KvStore(type, std::vector<uint8_t>(static_cast<size_t>(n_layers), 0), n_kv_heads, head_dim, n_blocks, 0) {}

KvStore::KvStore(KvType type, std::span<const uint8_t> windowed, int n_kv_heads, int head_dim, int n_blocks, int n_window_blocks)
    : type_(type), n_kv_heads_(n_kv_heads), head_bytes_(kernels::kv_bytes(type, head_dim)) {
  regions_[0].n_blocks = n_blocks;
  regions_[1].n_blocks = n_window_blocks;
  for (const uint8_t has_window : windowed) {
    const size_t region = has_window != 0 ? 1 : 0;
    places_.push_back({region, static_cast<size_t>(regions_[region].n_layers++)});
  }
  for (Region& region : regions_) {
    region.block_bytes = block_bytes(type, region.n_layers, n_kv_heads, head_dim);
    if (region.n_layers > 0) region.memory = Buffer(region.block_bytes * static_cast<size_t>(region.n_blocks));
  }
}

void KvStore::interleave(std::span<const int> nodes) {
  for (Region& region : regions_) region.memory.interleave(nodes);
}

std::byte* KvStore::head(int layer, int kv_head) {
  const size_t index = place(layer).layer * static_cast<size_t>(n_kv_heads_) + static_cast<size_t>(kv_head);
  return regions_[place(layer).region].memory.data() + index * head_bytes_;
}

void KvStore::copy_block(int from, int to) {
  Region& region = regions_[0];
  check(from >= 0 && from < region.n_blocks && to >= 0 && to < region.n_blocks, "copy_block: both blocks exist");
  std::byte* memory = region.memory.data();
  std::memcpy(memory + region.block_bytes * static_cast<size_t>(to), memory + region.block_bytes * static_cast<size_t>(from),
              region.block_bytes);
}

}  // namespace unisono::model
