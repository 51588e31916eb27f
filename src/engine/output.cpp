#include "engine/output.h"

#include <algorithm>

namespace unisono::engine {

bool begins_text(std::span<const TokenId> prompt, const text::Tokenizer& tokenizer) {
  return std::all_of(prompt.begin(), prompt.end(), [&](TokenId id) { return tokenizer.is_control(id); });
}

Output::Output(const Request& request, const text::Tokenizer& tokenizer, std::span<const TokenId> model_ends,
               int max_context)
    : request_(request),
      tokenizer_(tokenizer),
      detokenizer_(tokenizer, request.show_special, begins_text(request.prompt, tokenizer)),
      stop_strings_(request.stop),
      end_tokens_(request.stop_tokens),
      room_(max_context - static_cast<int>(request.prompt.size())) {
  if (!request.ignore_eos) end_tokens_.insert(end_tokens_.end(), model_ends.begin(), model_ends.end());
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
}

std::span<const TokenId> Output::banned() const {
  return n_tokens_ < request_.min_tokens ? std::span<const TokenId>(end_tokens_) : std::span<const TokenId>();
}

void Output::push(TokenId token, Delta& delta) {
  n_tokens_++;
  if (std::binary_search(end_tokens_.begin(), end_tokens_.end(), token)) {
    end_with_text(FinishReason::stop_token, delta);
    if (delta.finish != FinishReason::stop_token) return;
    delta.stop_detail = text::detokenize(tokenizer_, {token}, true, false);
    delta.stop_token = token;
    return;
  }
  add_text(detokenizer_.push(token), delta);
  if (delta.finish) return;
  if (n_tokens_ >= request_.max_tokens) return end_with_text(FinishReason::length, delta);
  if (n_tokens_ >= room_) return end_with_text(FinishReason::context, delta);
}

void Output::end(FinishReason reason, Delta& delta) {
  end_with_text(reason, delta);
  delta.finish = reason;
}

void Output::add_text(const std::string& text, Delta& delta) {
  const auto match = stop_strings_.push(text, delta.text);
  if (!match) return;
  delta.finish = FinishReason::stop_string;
  delta.stop_detail = request_.stop[*match];
}

// The incomplete character that may remain is text too, and may even complete a stop string.
void Output::end_with_text(FinishReason reason, Delta& delta) {
  add_text(detokenizer_.finish(), delta);
  if (delta.finish) return;
  stop_strings_.finish(delta.text);
  delta.finish = reason;
}

}  // namespace unisono::engine
