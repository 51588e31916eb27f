// Text to token ids and back to bytes. One class for the kinds of tokenizer; it knows nothing of files: engine/load fills
// in a spec. Immutable after create(), so any number of threads may use one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/texts.h"

namespace unisono::text {

using TokenId = int32_t;

// What a token is, with GGUF's numbers (tokenizer.ggml.token_type).
enum class TokenType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

enum class TokenizerKind : uint8_t {
  byte_bpe,           // byte-level BPE with a pre-tokenizer pattern (GGUF model "gpt2")
  sentencepiece_bpe,  // SentencePiece BPE with byte fallback, by scores (GGUF model "llama")
};

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::byte_bpe;
  std::string pre{};                         // pre-tokenizer name, for byte_bpe: "gpt-2", "llama-bpe", "qwen2", "smollm"
  std::vector<std::string_view> tokens{};    // as the file has them
  std::vector<TokenType> types{};            // empty: all normal
  std::vector<float> scores{};               // for sentencepiece_bpe
  std::vector<std::string_view> merges{};    // "left right", for byte_bpe
  std::optional<TokenId> bos{}, eos{}, unknown{};
  std::optional<bool> add_bos{}, add_eos{};  // absent: what this kind of tokenizer does by default
  std::optional<bool> add_space_prefix{};
};

// Text of which some parts were written by a user (messages, tool results, variables), not by the template's author.
// Only what lies outside those parts may match special tokens.
struct MarkedText {
  struct Span {
    size_t begin = 0, end = 0;  // bytes, half open; spans are in order and don't overlap
  };
  std::string text{};
  std::vector<Span> from_user{};
};

class Tokenizer {
 public:
  // Refused with a sentence: unknown `pre`, arrays of different lengths, ids outside the vocabulary, duplicate or broken
  // tokens and merges.
  static Result<Tokenizer> create(const TokenizerSpec& spec);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  int vocab_size() const;

  // Time is linear in the text (times the log of a word's length). Any bytes are accepted; what isn't UTF-8 is taken as
  // U+FFFD, one for each maximal broken part.
  // add_special: put BOS and EOS where the model wants them. parse_special: text may match control tokens.
  std::vector<TokenId> encode(std::string_view text, bool add_special, bool parse_special) const;
  // A rendered chat: special tokens match outside from_user only, and never across its borders; nothing is added.
  std::vector<TokenId> encode(const MarkedText& prompt) const;

  // The bytes a token stands for: not always whole characters. Control tokens give their text only with `special`.
  std::string bytes(TokenId id, bool special = false) const;
  // All tokens' bytes as bytes(id, true) gives them, for grammars: index = id; valid as long as the tokenizer.
  const Texts& vocabulary() const;

  bool is_control(TokenId id) const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;

 private:
  friend class Detokenizer;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono::text
