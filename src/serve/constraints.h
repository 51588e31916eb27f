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
  grammar::Shape shape{};
  grammar::JsonSchemaOptions options{};
  std::string field{};  // where it stood, to name it in errors
  bool marks = false;   // the family's control tokens count as their text, as the parts of a chat's answer need it
};

// OpenAI's response_format, vLLM's structured_outputs, llama.cpp's grammar and json_schema: at most one of them, else a
// mistake. Nothing: a free answer.
std::optional<ConstraintCall> read_constraint(Fields& fields);

// A grammar in GBNF, or in Lark: told apart as vLLM does, by the sign after a rule's name.
grammar::Shape grammar_shape(const std::string& text);

// schema_options: {"any_order", "whitespace", "formats"}, for every schema of the request.
grammar::JsonSchemaOptions read_schema_options(Fields& fields);

// "bounded", "compact" or "flexible".
std::optional<grammar::Whitespace> whitespace_named(std::string_view name);

// A tokenizer's vocabulary as grammars want it; control tokens other than `marks` are never allowed.
std::shared_ptr<const grammar::TokenTrie> token_trie(const text::Tokenizer& tokenizer,
                                                     const std::vector<text::TokenId>& end_tokens,
                                                     const std::vector<text::TokenId>& marks = {});

// For one model's vocabulary. May be used from any thread.
class Constraints {
 public:
  // end_tokens: besides the tokenizer's own. marks: the control tokens that calls with `marks` may use. The tokenizer must
  // outlive this.
  Constraints(const text::Tokenizer& tokenizer, std::vector<text::TokenId> end_tokens,
              std::vector<text::TokenId> marks = {});

  // A matcher at the beginning of an answer, or why there can't be one, with the field and the place in it.
  Parsed<grammar::Matcher> matcher(const ConstraintCall& call);

 private:
  struct Entry {
    std::string key{};
    std::shared_ptr<const grammar::Grammar> grammar{};
  };
  std::shared_ptr<const grammar::TokenTrie> trie(bool marks);

  const text::Tokenizer& tokenizer_;
  const std::vector<text::TokenId> end_tokens_, marks_;
  std::once_flag trie_made_{}, marked_made_{};
  std::shared_ptr<const grammar::TokenTrie> trie_{}, marked_{};
  std::mutex mutex_{};
  std::list<Entry> entries_{};  // the latest used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_{};
};

}  // namespace unisono::serve
