// Any bytes as the body of a request: parsed, taken apart, and answered or refused. The first byte chooses the endpoint.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "serve/api_error.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"

namespace {

using namespace unisono;

const serve::ModelFacts kModel{.name = "tiny", .vocab_size = 300, .max_context = 2048};

// A refusal is a client's mistake with a sentence, and it is JSON.
void check_refusal(const serve::ApiError& error) {
  const bool proper = error.status >= 400 && error.status < 500 && !error.message.empty() && !error.code.empty();
  if (!proper || !parse_json(serve::error_body(error))) std::abort();
}

// What was accepted is within the ranges that the engine relies on.
void check_call(const serve::GenerationCall& call) {
  const auto& sampling = call.request.sampling;
  const bool proper = call.n >= 1 && call.n <= serve::kMaxChoices && sampling.temperature >= 0 &&
                      sampling.temperature <= 2 && sampling.top_p > 0 && sampling.top_p <= 1 && sampling.top_k >= 0 &&
                      sampling.repetition_penalty > 0 && call.request.top_logprobs <= serve::kMaxTopLogprobs &&
                      call.request.min_tokens >= 0;
  if (!proper) std::abort();
  for (const auto& stop : call.request.stop) {
    if (stop.empty()) std::abort();
  }
  for (const auto id : call.request.stop_tokens) {
    if (id < 0 || id >= kModel.vocab_size) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto body = parse_json({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!body) return 0;
  if (data[0] % 2 == 0) {
    const auto parsed = serve::parse_chat(*body, kModel);
    if (const auto* error = std::get_if<serve::ApiError>(&parsed)) {
      check_refusal(*error);
    } else {
      check_call(std::get<serve::ChatCall>(parsed).generation);
    }
  } else {
    const auto parsed = serve::parse_completion(*body, kModel);
    if (const auto* error = std::get_if<serve::ApiError>(&parsed)) {
      check_refusal(*error);
    } else {
      check_call(std::get<serve::CompletionCall>(parsed).generation);
    }
  }
  return 0;
}
