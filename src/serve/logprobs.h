// Tokens and their log-probabilities as OpenAI reports them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace unisono::serve {

// A token's text; "bytes:\xe2\x80" when its bytes aren't whole characters.
std::string token_text(const text::Tokenizer& tokenizer, engine::TokenId id);

// As JSON has it: finite (-9999 for what can't be chosen), and with the digits that tell the float.
double json_logprob(float logprob);

// Chat: {"token", "logprob", "bytes", "top_logprobs"} for each token, with at most n_top likeliest.
JsonArray chat_logprobs(const text::Tokenizer& tokenizer, const std::vector<engine::TokenResult>& tokens, int n_top);

// A prompt, as vLLM tells it: null for its first token, then for each {id: {"logprob", "rank", "decoded_token"}} with the
// prompt's own token and the n_top likeliest. tokens: of the prompt's second, third ...
JsonArray prompt_logprobs(const text::Tokenizer& tokenizer, const std::vector<engine::TokenResult>& tokens, int n_top);

// Completions: four parallel arrays, the offsets counted in characters from the beginning of the answer's text.
class CompletionLogprobs {
 public:
  // n_top: likeliest tokens told at each place. special, at_start: how the answer's tokens become text, as
  // text::Detokenizer has it.
  CompletionLogprobs(const text::Tokenizer& tokenizer, int n_top, bool special, bool at_start)
      : tokenizer_(&tokenizer), n_top_(n_top), detokenizer_(tokenizer, special, at_start) {}

  // The prompt with which the text begins, control tokens included. Its first token has no probability; first_hidden: nor a
  // place in the text. scores: of the second token, the third ...
  void add_prompt(engine::TokenId first, bool first_hidden, const std::vector<engine::TokenResult>& scores);
  void add(const engine::TokenResult& token);
  bool empty() const { return tokens_.empty(); }
  // {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of what was added since the last call.
  JsonObject take();

 private:
  void tell(const engine::TokenResult& token);
  void place(engine::TokenId id);

  const text::Tokenizer* tokenizer_;
  int n_top_;
  text::Detokenizer detokenizer_;
  int64_t offset_ = 0;
  JsonArray tokens_{}, logprobs_{}, top_{}, offsets_{};
};

}  // namespace unisono::serve
