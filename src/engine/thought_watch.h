// Follows an answer's tokens through its thoughts, and says what must come next when they have taken all that they may.
// Knows texts and tokens; chooses nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/tokenizer.h"

namespace unisono::engine {

class ThoughtWatch {
 public:
  // The tokenizer must outlive this.
  ThoughtWatch(ThoughtBudget budget, const text::Tokenizer& tokenizer);

  // The token that must come next, to end a thought; none: any may.
  std::optional<TokenId> due() const;
  // The answer's next token.
  void push(TokenId token);

 private:
  enum class State : uint8_t { before, inside, over };
  void look_for_begin();
  void look_for_end();

  const ThoughtBudget budget_;
  const text::Tokenizer& tokenizer_;
  std::vector<TokenId> end_;  // the end's text as tokens
  State state_;
  std::string text_{};   // the last of it, in which a mark may have begun
  int n_tokens_ = 0;     // of thoughts
  size_t n_ending_ = 0;  // of end_, how many have come
};

}  // namespace unisono::engine
