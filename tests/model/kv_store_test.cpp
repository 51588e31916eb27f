#include "model/kv_store.h"

#include <gtest/gtest.h>

#include <cstring>

namespace unisono::model {
namespace {

TEST(KvStore, BlocksAreApartAndCopiesAreWhole) {
  for (const KvType type : {KvType::f16, KvType::f32}) {
    KvStore kv(type, 3, 2, 24, 5);
    EXPECT_EQ(KvStore::block_bytes(type, 3, 2, 24), 3 * 2 * kv.head_bytes());
    EXPECT_GE(kv.head_bytes(), static_cast<size_t>(16 * (24 + 32) * (type == KvType::f32 ? 4 : 2)));
    EXPECT_EQ(kv.head_bytes() % 64, 0u);
    auto fill = [&](int block, int value) {
      for (int l = 0; l < 3; l++)
        for (int h = 0; h < 2; h++) std::memset(kv.head(l, h) + kv.stride(0) * static_cast<size_t>(block), value + l * 2 + h, kv.head_bytes());
    };
    for (int b = 0; b < 5; b++) fill(b, b * 10);
    kv.copy_block(1, 4);
    for (int b = 0; b < 5; b++)
      for (int l = 0; l < 3; l++)
        for (int h = 0; h < 2; h++)
          for (size_t i : {size_t{0}, kv.head_bytes() - 1})
            EXPECT_EQ(static_cast<int>(kv.head(l, h)[kv.stride(0) * static_cast<size_t>(b) + i]), (b == 4 ? 1 : b) * 10 + l * 2 + h);
  }
}

TEST(KvStore, WindowedLayersHaveBlocksOfTheirOwn) {
  const std::vector<uint8_t> windowed{1, 0, 1};
  KvStore kv(KvType::f16, windowed, 2, 24, 3, 5);
  EXPECT_EQ(kv.stride(0), KvStore::block_bytes(KvType::f16, 2, 2, 24));
  EXPECT_EQ(kv.stride(1), KvStore::block_bytes(KvType::f16, 1, 2, 24));
  const auto each = [&](auto something) {
    for (int l = 0; l < 3; l++) {
      EXPECT_EQ(kv.has_window_blocks(l), windowed[static_cast<size_t>(l)] == 1);
      for (int h = 0; h < 2; h++)
        for (int b = 0; b < (kv.has_window_blocks(l) ? 5 : 3); b++)
          something(kv.head(l, h) + kv.stride(l) * static_cast<size_t>(b), (l * 2 + h) * 5 + b);
    }
  };
  each([&](std::byte* at, int value) { std::memset(at, value, kv.head_bytes()); });
  each([&](const std::byte* at, int value) {
    EXPECT_EQ(static_cast<int>(at[0]), value);
    EXPECT_EQ(static_cast<int>(at[kv.head_bytes() - 1]), value);
  });
}

}  // namespace
}  // namespace unisono::model
