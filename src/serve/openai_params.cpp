#include "serve/openai_params.h"

#include <charconv>
#include <random>

namespace unisono::serve {

namespace {

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

void read_sampling(Fields& fields, const ModelFacts& model, decode::SamplingParams& sampling) {
  if (const auto v = fields.number("temperature", 0, 2)) sampling.temperature = static_cast<float>(*v);
  if (const auto v = fields.number("top_p", 0, 1)) sampling.top_p = static_cast<float>(*v);
  if (const auto v = fields.integer("top_k", -1, INT32_MAX)) sampling.top_k = static_cast<int>(std::max<int64_t>(*v, 0));
  if (const auto v = fields.number("min_p", 0, 1)) sampling.min_p = static_cast<float>(*v);
  if (const auto v = fields.number("frequency_penalty", -2, 2)) sampling.frequency_penalty = static_cast<float>(*v);
  if (const auto v = fields.number("presence_penalty", -2, 2)) sampling.presence_penalty = static_cast<float>(*v);
  if (const auto v = fields.number("repetition_penalty", 0, 10)) {
    sampling.repetition_penalty = static_cast<float>(*v);
    if (!(sampling.repetition_penalty > 0))
      fields.fail("repetition_penalty", "invalid_value", "'repetition_penalty' must be above 0; 1 changes nothing.");
  }
  if (sampling.top_p == 0) {  // nothing but the best token is left
    sampling.top_p = 1;
    sampling.top_k = 1;
  }
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();

  const JsonObject* bias = fields.object("logit_bias");
  if (!bias) return;
  for (const auto& [key, value] : *bias) {
    int id = -1;
    const auto end = std::from_chars(key.data(), key.data() + key.size(), id);
    // Of several ways to write an id only one is taken, so that no token is named twice.
    if (end.ec != std::errc() || std::to_string(id) != std::string_view(key) || id < 0 || id >= model.vocab_size) {
      return fields.fail("logit_bias", "invalid_value",
                         "'logit_bias' must map token ids from 0 to " + std::to_string(model.vocab_size - 1) + "; " +
                             shown(Json(key)) + " is none.");
    }
    const double d = value.is_number() ? value.to_number<double>() : NAN;
    if (!(d >= -100 && d <= 100)) {
      return fields.fail("logit_bias", "invalid_value",
                         "'logit_bias' must map token ids to numbers from -100 to 100, not " + shown(value) + ".");
    }
    sampling.logit_bias.emplace_back(id, static_cast<float>(d));
  }
}

void add_stop(Fields& fields, std::string_view name, const Json& value, engine::Request& request) {
  const std::string field = "'" + std::string(name) + "'";
  if (!value.is_string())
    return fields.fail(name, "invalid_type", field + " must be a string or an array of strings, not " + shown(value) + ".");
  const auto& text = value.get_string();
  if (text.empty())
    return fields.fail(name, "invalid_value", field + " can't have an empty string: it would match everywhere.");
  if (text.size() > kMaxStopBytes)
    return fields.fail(name, "invalid_value",
                       "A string in " + field + " is longer than " + std::to_string(kMaxStopBytes) + " bytes.");
  request.stop.emplace_back(text);
}

void read_stops(Fields& fields, std::string_view name, engine::Request& request) {
  const Json* stop = fields.any(name);
  if (!stop) return;
  if (!stop->is_array()) return add_stop(fields, name, *stop, request);
  if (stop->get_array().size() > kMaxStopStrings)
    return fields.fail(name, "invalid_value",
                       "'" + std::string(name) + "' has " + std::to_string(stop->get_array().size()) +
                           " strings; at most " + std::to_string(kMaxStopStrings) + " are taken.");
  for (const Json& one : stop->get_array()) add_stop(fields, name, one, request);
}

void read_ends(Fields& fields, const ModelFacts& model, engine::Request& request) {
  if (const JsonArray* ids = fields.array("stop_token_ids")) {
    for (const Json& one : *ids) {
      const auto id = whole_number(one);
      if (!id || *id < 0 || *id >= model.vocab_size) {
        fields.fail("stop_token_ids", "invalid_value",
                    "'stop_token_ids' must have token ids from 0 to " + std::to_string(model.vocab_size - 1) + ", not " +
                        shown(one) + ".");
        break;
      }
      request.stop_tokens.push_back(static_cast<engine::TokenId>(*id));
    }
  }
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.min_tokens = static_cast<int>(fields.integer("min_tokens", 0, INT32_MAX).value_or(0));
}

void read_salt(Fields& fields, engine::Request& request) {
  const auto salt = fields.string("cache_salt");
  if (!salt) return;
  if (salt->empty() || salt->size() > engine::kMaxSaltBytes)
    return fields.fail("cache_salt", "invalid_value",
                       "'cache_salt' must have 1 to " + std::to_string(engine::kMaxSaltBytes) + " bytes.");
  request.cache_salt = *salt;
}

void read_turn(Fields& fields, engine::Request& request) {
  if (const auto seconds = fields.number("timeout", 0, kMaxTimeoutSeconds)) {
    if (*seconds == 0) fields.fail("timeout", "invalid_value", "'timeout' must be above 0 seconds.");
    request.deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                              std::chrono::duration<double>(*seconds));
  }
  request.priority = static_cast<int>(fields.integer("priority", INT32_MIN, INT32_MAX).value_or(0));
}

void read_truncation(Fields& fields, Truncation& truncation) {
  if (const auto way = fields.string("truncation")) {
    truncation.automatic = *way == "auto";
    if (*way != "auto" && *way != "disabled")
      fields.fail("truncation", "invalid_value", "'truncation' must be auto or disabled, not " + shown(Json(*way)) + ".");
  }
  const auto keep = fields.integer("truncate_prompt_tokens", -1, INT32_MAX);
  if (!keep) return;
  if (*keep == 0)
    fields.fail("truncate_prompt_tokens", "invalid_value",
                "'truncate_prompt_tokens' must be at least 1, or -1 for as many as fit: a prompt can't be empty.");
  if (truncation.automatic)
    fields.fail("truncate_prompt_tokens", "invalid_value",
                "'truncation' and 'truncate_prompt_tokens' are two ways to cut a prompt; send one.");
  truncation.keep_tokens = static_cast<int>(std::max<int64_t>(*keep, 0));
}

void read_told(Fields& fields, GenerationCall& call) {
  if (const auto top = fields.integer("prompt_logprobs", 0, kMaxTopLogprobs)) {
    call.prompt_logprobs = static_cast<int>(*top);
    if (call.stream)
      fields.fail("prompt_logprobs", "unsupported_value", "'prompt_logprobs' can't be streamed; ask without 'stream'.");
  }
  call.token_ids = fields.boolean("return_token_ids").value_or(false);
  call.timings = fields.boolean("return_timings").value_or(false);
}

}  // namespace

void read_stream(Fields& fields, GenerationCall& call, bool tells_usage) {
  call.stream = fields.boolean("stream").value_or(false);
  const JsonObject* options = fields.object("stream_options");
  if (!options) return;
  if (!call.stream) return fields.fail("stream_options", "invalid_value", "'stream_options' needs 'stream': true.");
  Fields inner(*options, "stream_options.");
  if (tells_usage) {
    call.include_usage = inner.boolean("include_usage").value_or(false);
    call.continuous_usage = inner.boolean("continuous_usage_stats").value_or(false);
  }
  static constexpr std::string_view kNoEffect[] = {"include_obfuscation"};
  inner.ignore(kNoEffect);
  if (const auto error = inner.finish()) fields.fail(*error);
}

GenerationCall read_common(Fields& fields, const ModelFacts& model, std::string_view stop) {
  GenerationCall call;
  check_model(fields, model);
  read_sampling(fields, model, call.request.sampling);
  read_stops(fields, stop, call.request);
  read_ends(fields, model, call.request);
  read_salt(fields, call.request);
  read_turn(fields, call.request);
  read_truncation(fields, call.truncation);
  call.request.show_special = !fields.boolean("skip_special_tokens").value_or(true);
  return call;
}

GenerationCall read_generation(Fields& fields, const ModelFacts& model) {
  GenerationCall call = read_common(fields, model);
  read_stream(fields, call, true);
  call.constraint = read_constraint(fields);
  call.schema_options = call.constraint ? call.constraint->options : read_schema_options(fields);
  call.n = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  read_told(fields, call);
  return call;
}

void check_min_tokens(Fields& fields, const GenerationCall& call, std::string_view limit) {
  if (!call.max_tokens || call.request.min_tokens <= *call.max_tokens) return;
  fields.fail("min_tokens", "invalid_value",
              "'min_tokens' must be at most '" + std::string(limit) + "', which is " + std::to_string(*call.max_tokens) +
                  ", not " + std::to_string(call.request.min_tokens) + ".");
}

void check_model(Fields& fields, const ModelFacts& model) {
  const auto name = fields.string("model");
  if (!name || *name == model.name) return;
  fields.fail({.status = 404,
               .message = "There is no model " + shown(Json(*name)) + " here; this server has '" + model.name + "'.",
               .param = "model",
               .code = "model_not_found"});
}

}  // namespace unisono::serve
