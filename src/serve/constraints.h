// Constrained answers: what a client asks for, compiled once and kept. The engine gets a matcher; what a grammar is belongs
// to the grammar room.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "grammar/matcher.h"
#include "serve/api_error.h"
#include "serve/fields.h"
#include "text/tokenizer.h"

namespace unisono::serve {

struct ConstraintCall {
  enum class Kind : uint8_t { json_object, json_schema, regex, choice, gbnf };
  Kind kind = Kind::json_object;
  Json value{};         // the schema, pattern, choices or grammar
  std::string field{};  // where it stood, to name it in errors
};

// OpenAI's response_format, vLLM's structured_outputs, llama.cpp's grammar and json_schema: at most one of them, else a
// mistake. Nothing: a free answer.
std::optional<ConstraintCall> read_constraint(Fields& fields);

// A tokenizer's vocabulary as grammars want it; its other control tokens are never allowed.
std::shared_ptr<const grammar::TokenTrie> token_trie(const text::Tokenizer& tokenizer, const std::vector<text::TokenId>& end_tokens);

// For one model's vocabulary. May be used from any thread.
class Constraints {
 public:
  // end_tokens: besides the tokenizer's own. The tokenizer must outlive this.
  Constraints(const text::Tokenizer& tokenizer, std::vector<text::TokenId> end_tokens);

  // A matcher at the beginning of an answer, or why there can't be one, with the field and the place in it.
  Parsed<grammar::Matcher> matcher(const ConstraintCall& call);

 private:
  struct Entry {
    std::string key{};
    std::shared_ptr<const grammar::Grammar> grammar{};
  };
  std::shared_ptr<const grammar::TokenTrie> trie();

  const text::Tokenizer& tokenizer_;
  const std::vector<text::TokenId> end_tokens_;
  std::once_flag trie_made_{};
  std::shared_ptr<const grammar::TokenTrie> trie_{};
  std::mutex mutex_{};
  std::list<Entry> entries_{};  // the latest used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_{};
};

}  // namespace unisono::serve
