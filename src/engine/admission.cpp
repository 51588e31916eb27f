#include "engine/admission.h"

#include <string>

#include "decode/sampler.h"

namespace unisono::engine {

namespace {

Error refusal(std::string subject, std::string message) {
  return {.message = std::move(message), .subject = std::move(subject)};
}

Result<void> check_ids(const std::vector<TokenId>& ids, const char* field, int vocab_size) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocab_size)
      return refusal(field, std::string(field) + " has token " + std::to_string(id) + ", but the vocabulary has ids 0 to " +
                                std::to_string(vocab_size - 1) + ".");
  return {};
}

Result<void> check_prompt(const Request& request, int vocab_size, int max_context) {
  if (request.prompt.empty()) return refusal("prompt", "The prompt has no tokens; it needs at least one.");
  if (request.prompt.size() >= static_cast<size_t>(max_context))
    return refusal("prompt", "The prompt has " + std::to_string(request.prompt.size()) + " tokens, but the context of " +
                                 std::to_string(max_context) + " leaves room for " + std::to_string(max_context - 1) +
                                 " and an answer; shorten the prompt.");
  return check_ids(request.prompt, "prompt", vocab_size);
}

Result<void> check_counts(const Request& request, int vocab_size) {
  if (request.max_tokens < 1) return refusal("max_tokens", "max_tokens must be at least 1.");
  if (request.min_tokens < 0 || request.min_tokens > request.max_tokens)
    return refusal("min_tokens",
                   "min_tokens must be between 0 and max_tokens (" + std::to_string(request.max_tokens) + ").");
  if (request.top_logprobs < 0 || request.top_logprobs > vocab_size)
    return refusal("top_logprobs",
                   "top_logprobs must be between 0 and the vocabulary's size (" + std::to_string(vocab_size) + ").");
  return {};
}

Result<void> check_stops(const Request& request, int vocab_size) {
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return refusal("stop", "A stop string is empty; remove it.");
    if ((static_cast<unsigned char>(stop[0]) & 0xC0) == 0x80)
      return refusal("stop", "A stop string begins in the middle of a UTF-8 character; stop strings must be valid UTF-8.");
  }
  return check_ids(request.stop_tokens, "stop_tokens", vocab_size);
}

}  // namespace

Result<void> check_request(const Request& request, int vocab_size, int max_context) {
  if (auto checked = check_prompt(request, vocab_size, max_context); !checked) return checked;
  if (auto checked = check_counts(request, vocab_size); !checked) return checked;
  if (auto checked = check_stops(request, vocab_size); !checked) return checked;
  if (request.cache_salt.size() > kMaxSaltBytes)
    return refusal("cache_salt", "cache_salt has " + std::to_string(request.cache_salt.size()) + " bytes; it may have " +
                                     std::to_string(kMaxSaltBytes) + ".");
  return decode::validate(request.sampling, vocab_size);
}

}  // namespace unisono::engine
