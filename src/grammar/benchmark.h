// Scores this room on JSON Schemas with instances: which answers the masks let through, and how long compiling and
// masking take. It reads parsed cases and returns a report; files, tokenizers and printing belong to its caller.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"
#include "grammar/token_trie.h"

namespace unisono::grammar {

class Benchmark {
 public:
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;
  Benchmark(std::shared_ptr<const TokenTrie> trie, Encode encode, JsonSchemaOptions options)
      : trie_(std::move(trie)), encode_(std::move(encode)), options_(options) {}

  // One {"name", "schema", "tests": [{"valid", "data"}]}. A valid instance must be allowed token by token, and then end; an
  // invalid one must meet a token or an end that isn't allowed.
  Result<void> add(const Json& test_case);
  // {"summary": {schemas, right, refused, invalid_accepted, valid_rejected, compile_ms, mask_us}, "schemas": [...]}: counts
  // of schemas; of the schemas only those that weren't right are listed, with `why`.
  Json report() const;

 private:
  bool walk(const std::shared_ptr<const Grammar>& grammar, const std::string& text, std::string* stopped);

  std::shared_ptr<const TokenTrie> trie_;
  Encode encode_;
  JsonSchemaOptions options_;
  uint64_t schemas_ = 0, right_ = 0, refused_ = 0, invalid_accepted_ = 0, valid_rejected_ = 0;
  std::vector<double> compile_ms_{}, mask_us_{}, accept_us_{};
  JsonArray wrong_{};
};

// As Python's json.dumps writes it, with ", " and ": " and without escaping what isn't ASCII.
std::string python_json(const Json& value);

}  // namespace unisono::grammar
