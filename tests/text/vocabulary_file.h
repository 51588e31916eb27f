// A tokenizer from a GGUF file, for tests: what engine/load does, in a few lines.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "text/tokenizer.h"

namespace unisono::text {

struct VocabularyFile {
  std::unique_ptr<checkpoint::Checkpoint> file{};
  TokenizerSpec spec{};
};

// A file's spec, viewing the open file. Ends the test program when the file isn't as it should be.
inline VocabularyFile open_vocabulary(const std::string& path) {
  auto opened = checkpoint::Checkpoint::open(path);
  check(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
  VocabularyFile made{std::make_unique<checkpoint::Checkpoint>(std::move(opened).value()), {}};
  const checkpoint::Checkpoint& file = *made.file;
  TokenizerSpec& spec = made.spec;
  const std::string prefix = "tokenizer.ggml.";
  const auto id = [&](const char* key) -> std::optional<TokenId> {
    const auto value = file.integer(prefix + key, 0, INT32_MAX);
    return value.ok() && *value ? std::optional(static_cast<TokenId>(**value)) : std::nullopt;
  };
  const auto model = file.string(prefix + "model").value().value_or("");
  check(model == "llama" || model == "gpt2", "a kind of tokenizer that is known");
  spec.kind = model == "llama" ? TokenizerKind::sentencepiece_bpe : TokenizerKind::byte_bpe;
  spec.pre = file.string(prefix + "pre").value().value_or("");
  spec.tokens = file.strings(prefix + "tokens").value().value();
  for (const int64_t type : file.integers(prefix + "token_type", 1, 6).value().value_or(std::vector<int64_t>()))
    spec.types.push_back(static_cast<TokenType>(type));
  for (const double score : file.numbers(prefix + "scores").value().value_or(std::vector<double>()))
    spec.scores.push_back(static_cast<float>(score));
  spec.merges = file.strings(prefix + "merges").value().value_or(std::vector<std::string_view>());
  spec.bos = id("bos_token_id");
  spec.eos = id("eos_token_id");
  spec.unknown = id("unknown_token_id");
  spec.add_bos = file.boolean(prefix + "add_bos_token").value();
  spec.add_eos = file.boolean(prefix + "add_eos_token").value();
  spec.add_space_prefix = file.boolean(prefix + "add_space_prefix").value();
  if (spec.kind == TokenizerKind::byte_bpe) spec.add_space_prefix = std::nullopt;
  return made;
}

inline Tokenizer tokenizer_of(const VocabularyFile& vocabulary) {
  Result<Tokenizer> made = Tokenizer::create(vocabulary.spec);
  check(made.ok(), made.ok() ? "" : made.error().message.c_str());
  return std::move(made).value();
}

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace unisono::text
