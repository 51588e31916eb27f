// The memory of keys and values: blocks of 16 positions, addressed by block number. Who owns which block is the engine's
// business (engine/block_pool).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "kernels/ops.h"

namespace unisono::model {

using kernels::KvType;

// Block after block; in a block layer after layer, kv head after kv head, each as kernels/ops.h lays it out. So memory is
// touched, and becomes the process's, as blocks come into use, and the blocks of a sequence lie on few huge pages.
// Either a block is one of all layers, or windowed layers have blocks of their own, numbered apart: positions that left the
// window can then be given up while the other layers keep them.
class KvStore {
 public:
  KvStore(KvType type, int n_layers, int n_kv_heads, int head_dim, int n_blocks);
  // windowed: [layers], not all alike; those with 1 have the window blocks.
  KvStore(KvType type, std::span<const uint8_t> windowed, int n_kv_heads, int head_dim, int n_blocks, int n_window_blocks);

  KvType type() const { return type_; }
  int n_blocks() const { return regions_[0].n_blocks; }
  int n_window_blocks() const { return regions_[1].n_blocks; }
  int n_layers() const { return static_cast<int>(places_.size()); }
  // Bytes of one block over so many layers.
  static size_t block_bytes(KvType type, int n_layers, int n_kv_heads, int head_dim);

  // The layer's blocks are window blocks: it goes by BatchSequence::window_table.
  bool has_window_blocks(int layer) const { return place(layer).region == 1; }
  // A layer's blocks of one kv head: block b starts at head() + b * stride() bytes, its keys first, head_bytes() in all.
  std::byte* head(int layer, int kv_head);
  size_t stride(int layer) const { return regions_[place(layer).region].block_bytes; }
  size_t head_bytes() const { return head_bytes_; }

  // Deals the memory over these nodes, as any worker may attend to any block; before anything is stored.
  void interleave(std::span<const int> nodes);

  // Copies block `from` to block `to` in all layers without window blocks (copy on write).
  void copy_block(int from, int to);

 private:
  struct Region {
    int n_layers = 0, n_blocks = 0;
    size_t block_bytes = 0;
    Buffer memory{};
  };
  struct Place {
    size_t region = 0, layer = 0;  // the layer's number among those of its region
  };
  const Place& place(int layer) const { return places_[static_cast<size_t>(layer)]; }

  KvType type_;
  int n_kv_heads_;
  size_t head_bytes_;
  std::vector<Place> places_{};  // [layers]
  std::array<Region, 2> regions_{};
};

}  // namespace unisono::model
