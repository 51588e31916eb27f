// What the grammar tests share: a vocabulary of single bytes, and whether a grammar takes a text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"

namespace unisono::grammar {

using GrammarPtr = std::shared_ptr<const Grammar>;

inline std::shared_ptr<const TokenTrie> byte_trie() {
  static const std::shared_ptr<const TokenTrie> trie = [] {
    Texts tokens;
    for (int b = 0; b < 256; ++b) tokens.add(std::string(1, char(b)));
    tokens.add("");
    return TokenTrie::build(tokens, {256}, {});
  }();
  return trie;
}

inline Json json(std::string_view text) {
  Result<Json> value = parse_json(text, 500);
  EXPECT_TRUE(value.ok()) << text;
  return value ? *value : Json();
}

inline GrammarPtr made(Result<GrammarPtr> grammar) {
  EXPECT_TRUE(grammar.ok()) << (grammar ? "" : grammar.error().message);
  return grammar ? *grammar : nullptr;
}

inline GrammarPtr schema(std::string_view text, const JsonSchemaOptions& options = {}) {
  return made(Grammar::from_json_schema(json(text), options));
}

// The whole text, and an end after it.
inline bool takes(const GrammarPtr& grammar, std::string_view text) {
  if (!grammar) return false;
  Matcher matcher(grammar, byte_trie());
  return (text.empty() || matcher.accept_bytes(text)) && matcher.may_end();
}

}  // namespace unisono::grammar
