// What the server says about itself.
#include "serve/api_error.h"
#include "serve/endpoints.h"

namespace unisono::serve {

namespace {

JsonObject model_json(const ServeContext& context) {
  return {{"id", context.model.name},
          {"object", "model"},
          {"created", context.created},
          {"owned_by", "unisono"},
          {"max_model_len", context.model.max_context}};
}

}  // namespace

std::string models_body(const ServeContext& context) {
  return to_text(JsonObject{{"object", "list"}, {"data", JsonArray{model_json(context)}}});
}

HttpResponse one_model(const ServeContext& context, const std::string& name) {
  if (name == context.model.name) return {.body = to_text(model_json(context))};
  return error_response({.status = 404,
                         .message = "There is no such model here; this server has '" + context.model.name + "'.",
                         .param = "model",
                         .code = "model_not_found"});
}

std::string version_body(const ServeContext& context) { return to_text(JsonObject{{"version", context.version}}); }

HttpResponse health(const ServeContext& context) {
  const engine::EngineState state = context.engine.state();
  const bool ok = state.busy_s < std::chrono::duration<double>(context.longest_step).count();
  JsonObject body{{"status", ok ? "ok" : "stalled"},  {"busy_ms", static_cast<int64_t>(state.busy_s * 1000)},
                  {"running", state.running},         {"waiting", state.waiting},
                  {"blocks_free", state.blocks_free}, {"blocks_total", state.blocks_total}};
  if (state.window_blocks_total > 0) {
    body["window_blocks_free"] = state.window_blocks_free;
    body["window_blocks_total"] = state.window_blocks_total;
  }
  body["steps"] = state.steps;
  return {.status = ok ? 200 : 503, .body = to_text(body)};
}

}  // namespace unisono::serve
