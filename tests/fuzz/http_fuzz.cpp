// Any bytes as the body of a request: parsed, taken apart, and answered or refused. The first byte chooses the endpoint.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/json.h"
#include "serve/anthropic_messages.h"
#include "serve/api_error.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"
#include "serve/openai_responses.h"

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

const serve::GenerationCall& generation_of(const serve::ChatCall& call) { return call.generation; }
const serve::GenerationCall& generation_of(const serve::CompletionCall& call) { return call.generation; }
const serve::GenerationCall& generation_of(const serve::ResponseCall& call) { return call.chat.generation; }

template <class Call>
void check(const serve::Parsed<Call>& parsed) {
  if (const auto* error = std::get_if<serve::ApiError>(&parsed)) return check_refusal(*error);
  check_call(generation_of(std::get<Call>(parsed)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto body = parse_json({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!body) return 0;
  switch (data[0] % 4) {
    case 0: check(serve::parse_chat(*body, kModel)); break;
    case 1: check(serve::parse_completion(*body, kModel)); break;
    case 2: check(serve::parse_response(*body, kModel)); break;
    case 3: check(serve::parse_messages(*body, kModel)); break;
  }
  return 0;
}
