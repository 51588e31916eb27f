// The memory of keys and values: blocks of 16 positions for every layer, addressed by block number. Who owns which block
// is the engine's business (engine/block_pool).
#pragma once

#include <cstdint>

#include "base/buffer.h"
#include "kernels/ops.h"

namespace unisono::model {

using kernels::KvType;

// Block after block; in a block layer after layer, kv head after kv head, each as kernels/ops.h lays it out. So memory is touched, and becomes the process's, as blocks come into use, and
// the blocks of a sequence lie on few huge pages.
class KvStore {
 public:
  KvStore(KvType type, int n_layers, int n_kv_heads, int head_dim, int n_blocks);

  KvType type() const { return type_; }
  int n_blocks() const { return n_blocks_; }
  int n_layers() const { return n_layers_; }
  // Bytes of one block over all layers.
  static size_t block_bytes(KvType type, int n_layers, int n_kv_heads, int head_dim);

  // A layer's blocks of one kv head: block b starts at head() + b * stride() bytes, its keys first, head_bytes() in all.
  std::byte* head(int layer, int kv_head);
  size_t stride() const { return block_bytes_; }
  size_t head_bytes() const { return head_bytes_; }

  // Copies block `from` to block `to` in all layers (copy on write).
  void copy_block(int from, int to);

 private:
  KvType type_;
  int n_layers_, n_kv_heads_, n_blocks_;
  size_t head_bytes_, block_bytes_;
  Buffer memory_;
};

}  // namespace unisono::model
