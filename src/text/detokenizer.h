// Tokens to text as they come: every piece is whole, valid UTF-8, and the pieces together equal the text of the whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace unisono::text {

class Detokenizer {
 public:
  // special: control tokens appear as their text. at_start: the tokens begin a text, so that the space a SentencePiece
  // tokenizer puts before a text is dropped from the first piece; false when they go on from a prompt.
  explicit Detokenizer(const Tokenizer& tokenizer, bool special = false, bool at_start = false);

  // The text that has become certain; an incomplete character waits for its other bytes. Broken bytes give U+FFFD.
  std::string push(TokenId id);
  // What still waits, at the end: U+FFFD for the incomplete character.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  bool strip_space_;
  std::string waiting_{};  // bytes of an incomplete character
};

std::string detokenize(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool special = false, bool at_start = true);

}  // namespace unisono::text
