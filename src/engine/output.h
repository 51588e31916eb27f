// From chosen tokens to what the client sees: end rules, text, stop strings. One per answer; it knows no batch and no
// blocks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/stop_strings.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace unisono::engine {

// An answer to nothing but control tokens begins a text, and is spelt as one; else it goes on from the prompt's.
bool begins_text(std::span<const TokenId> prompt, const text::Tokenizer& tokenizer);

class Output {
 public:
  // The request and the tokenizer must outlive this. model_ends: the model's own end tokens. max_context: positions of a
  // sequence, prompt included.
  Output(const Request& request, const text::Tokenizer& tokenizer, std::span<const TokenId> model_ends, int max_context);

  // Tokens that can't be chosen next: the end tokens, before min_tokens.
  std::span<const TokenId> banned() const;

  // The next chosen token: appends its certain text to delta.text and, when the answer ends with it, sets finish and
  // stop_detail. An end token adds no text. Nothing may be pushed after the end.
  void push(TokenId token, Delta& delta);
  // The answer ends for a reason that lies elsewhere: what was held back is sent.
  void end(FinishReason reason, Delta& delta);

  int n_tokens() const { return n_tokens_; }

 private:
  void add_text(const std::string& text, Delta& delta);
  void end_with_text(FinishReason reason, Delta& delta);

  const Request& request_;
  const text::Tokenizer& tokenizer_;
  text::Detokenizer detokenizer_;
  StopStrings stop_strings_;
  std::vector<TokenId> end_tokens_{};  // sorted
  int room_ = 0;                       // tokens the context leaves for the answer
  int n_tokens_ = 0;                   // of the answer
};

}  // namespace unisono::engine
