#include "serve/answer_frame.h"

#include <cmath>
#include <ctime>

#include "serve/sse.h"

namespace unisono::serve {

namespace {

double to_ms(double seconds) { return std::round(seconds * 1e6) / 1e3; }

// By llama.cpp's names where it has them. A rate needs two tokens to be one.
JsonObject timings_json(const engine::Timings& timings, const engine::Usage& usage) {
  const int computed = usage.prompt_tokens - usage.cached_tokens, made = usage.completion_tokens;
  const auto ratio = [](double a, double b) { return a > 0 && b > 0 ? Json(a / b) : Json(nullptr); };
  return {{"queue_ms", to_ms(timings.queue_s)},
          {"cache_n", usage.cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", to_ms(timings.prefill_s)},
          {"prompt_per_second", ratio(computed, timings.prefill_s)},
          {"predicted_n", made},
          {"predicted_ms", to_ms(timings.decode_s)},
          {"predicted_per_second", ratio(made - 1, timings.decode_s)}};
}

}  // namespace

AnswerFrame::AnswerFrame(const ServeContext& context, const AnswerOptions& options, const Names& names)
    : id_(random_id(names.id_prefix)),
      model_(context.model.name),
      fingerprint_(context.fingerprint),
      created_(std::time(nullptr)),
      names_(names),
      include_usage_(options.include_usage),
      continuous_usage_(options.continuous_usage) {}

JsonObject AnswerFrame::head(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}, {"system_fingerprint", fingerprint_}};
}

std::string AnswerFrame::chunk(JsonObject choice, const engine::Usage& so_far, JsonObject further) const {
  JsonObject event = head(names_.chunk);
  event["choices"] = JsonArray{std::move(choice)};
  if (continuous_usage_) {
    event["usage"] = usage_json(so_far);
  } else if (include_usage_) {
    event["usage"] = nullptr;
  }
  append(event, std::move(further));
  return sse_event(event);
}

std::string AnswerFrame::closing(const engine::Usage& usage) const {
  std::string events;
  if (include_usage_) {
    JsonObject last = head(names_.chunk);
    last["choices"] = JsonArray();
    last["usage"] = usage_json(usage);
    events += sse_event(last);
  }
  return events + sse_done();
}

std::string AnswerFrame::whole(JsonArray choices, const engine::Usage& usage, JsonObject further) const {
  JsonObject body = head(names_.whole);
  body["choices"] = std::move(choices);
  body["usage"] = usage_json(usage);
  append(body, std::move(further));
  return to_text(body);
}

JsonObject ending(const engine::Delta& delta, const AnswerOptions& options) {
  JsonObject end{{"finish_reason", finish_name(*delta.finish)}, {"stop_reason", stop_reason(delta)}};
  if (options.timings) end["timings"] = timings_json(delta.timings, delta.usage);
  return end;
}

JsonObject usage_json(const engine::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}}};
}

JsonArray ids_json(const std::vector<engine::TokenId>& ids) { return JsonArray(ids.begin(), ids.end()); }

void append(JsonObject& to, JsonObject more) {
  for (auto& field : more) to[field.key()] = std::move(field.value());
}

}  // namespace unisono::serve
