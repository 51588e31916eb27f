#include "serve/answer.h"

#include <ctime>
#include <random>

namespace unisono::serve {

AnswerHead AnswerHead::make(const std::string& id_prefix, const ServeContext& context) {
  AnswerHead head{
      .id = id_prefix, .created = std::time(nullptr), .model = context.model.name, .fingerprint = context.fingerprint};
  std::random_device device;
  for (int word = 0; word < 3; word++) {
    for (uint32_t bits = device(), digit = 0; digit < 8; digit++, bits >>= 4) head.id += "0123456789abcdef"[bits & 15];
  }
  return head;
}

JsonObject AnswerHead::json(std::string_view object) const {
  return {{"id", id}, {"object", object}, {"created", created}, {"model", model}, {"system_fingerprint", fingerprint}};
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
    default: return nullptr;
  }
}

JsonObject usage_json(const engine::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}}};
}

}  // namespace unisono::serve
