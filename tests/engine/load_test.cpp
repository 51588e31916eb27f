// What a file's keys mean, where files differ in how they say it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "engine/load.h"

namespace unisono::engine {
namespace {

// The tiny llama with the 32 bits that stand `behind` a key's name set to `value`.
void set(std::string& file, const std::string& key, size_t behind, uint32_t value) {
  const size_t at = file.find(key);
  ASSERT_NE(at, std::string::npos);
  std::memcpy(file.data() + at + key.size() + behind, &value, sizeof value);
}

// Older converters call a chat's markers user-defined: they end a turn all the same.
TEST(EndTokens, AreFoundByTheirTextWhereTheyAreUserDefined) {
  constexpr text::TokenId kTurnEnd = 265, kTextEnd = 263;
  std::ifstream in(UNISONO_GOLDEN_DIR "/tiny/llama.gguf", std::ios::binary);
  std::string file(std::istreambuf_iterator<char>(in), {});
  for (const uint32_t type : {3u, 4u, 1u}) {
    set(file, "tokenizer.ggml.eos_token_id", 4, kTextEnd);
    set(file, "tokenizer.ggml.token_type", 16 + 4 * kTurnEnd, type);
    const auto opened = checkpoint::Checkpoint::parse(std::as_bytes(std::span(file)));
    ASSERT_TRUE(opened.ok());
    const auto described = describe(*opened, "llama.gguf");
    ASSERT_TRUE(described.ok());
    const auto& ends = described->end_tokens;
    EXPECT_EQ(std::ranges::count(ends, kTextEnd), 1);
    EXPECT_EQ(std::ranges::count(ends, kTurnEnd), type == 1 ? 0 : 1) << type;  // a normal one is a user's text too
  }
}

}  // namespace
}  // namespace unisono::engine
