#include "serve/answer.h"

#include <random>

#include "serve/sse.h"

namespace unisono::serve {

std::string Answer::failure(const ApiError& error) { return sse_event_text(error_body(error)) + sse_done(); }

HttpResponse Answer::refusal(const ApiError& error) { return error_response(error); }

std::string random_id(std::string prefix) {
  std::random_device device;
  for (int word = 0; word < 3; word++) {
    for (uint32_t bits = device(), digit = 0; digit < 8; digit++, bits >>= 4) prefix += "0123456789abcdef"[bits & 15];
  }
  return prefix;
}

std::string finish_name(engine::FinishReason reason) {
  const bool natural = reason == engine::FinishReason::stop_token || reason == engine::FinishReason::stop_string ||
                       reason == engine::FinishReason::complete;
  return natural ? "stop" : "length";
}

Json stop_reason(const engine::Delta& delta) {
  switch (*delta.finish) {
    case engine::FinishReason::stop_string: return Json(delta.stop_detail);
    case engine::FinishReason::stop_token: return delta.stop_token ? Json(*delta.stop_token) : Json(nullptr);
    case engine::FinishReason::context: return Json("context");
    case engine::FinishReason::deadline: return Json("deadline");
    case engine::FinishReason::cancelled: return Json("cancelled");
    default: return nullptr;
  }
}

}  // namespace unisono::serve
