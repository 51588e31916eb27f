#include "serve/openai_chat.h"

#include <algorithm>
#include <array>
#include <utility>

#include "serve/text_content.h"

namespace unisono::serve {

namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

// OpenAI has these fields; they don't change the answer here.
constexpr std::string_view kNoEffect[] = {"user",
                                          "store",
                                          "metadata",
                                          "service_tier",
                                          "safety_identifier",
                                          "prompt_cache_key",
                                          "prompt_cache_retention",
                                          "prompt_cache_options"};

constexpr Fields::Refused kRefused[] = {
    {"functions", "use 'tools'"},
    {"audio", "the model answers in text"},
    {"prediction", "predicted outputs aren't built"},
    {"web_search_options", "this server doesn't search the web"},
    {"moderation", "this server doesn't moderate"},
    {"reasoning_effort", "what a template knows of it goes into 'chat_template_kwargs'"},
};

// Fields of which only the value that changes nothing is taken.
void check_neutral(Fields& fields) {
  const auto only = [&fields](std::string_view name, const Json& neutral, std::string_view why) {
    const Json* value = fields.any(name);
    if (!value || *value == neutral) return;
    fields.fail(name, "unsupported_value",
                "'" + std::string(name) + "' can only be " + to_text(neutral) + " here, not " + shown(*value) + ": " +
                    std::string(why) + ".");
  };
  only("function_call", "none", "use 'tools' and 'tool_choice'");
  only("modalities", JsonArray{"text"}, "the model answers in text");
  only("verbosity", "medium", "the model doesn't know of it");
}

constexpr std::string_view kTextTypes[] = {"text"};
constexpr TextParts kText{.types = kTextTypes};

// What clients note beside a call, and send back with it.
constexpr std::string_view kNoted[] = {"index"}, kNotedOfFunction[] = {"parsed_arguments"};

void check_called(Fields& function) {
  function.needed_string("name");
  if (const Json* arguments = function.any("arguments"); arguments && !arguments->is_string() && !arguments->is_object())
    function.fail("arguments", "invalid_type",
                  "'" + function.full_name("arguments") + "' must be a string of JSON, not " + shown(*arguments) + ".");
  function.ignore(kNotedOfFunction);
}

void check_call(Fields& call) {
  call.string("id");
  if (const auto type = call.string("type"); type && *type != "function")
    call.fail("type", "unsupported_value",
              "'" + call.full_name("type") + "' can only be function, not " + shown(Json(*type)) + ".");
  call.ignore(kNoted);
  call.required("function");
  const JsonObject* function = call.object("function");
  if (!function) return;
  Fields inner(*function, call.full_name("function."));
  check_called(inner);
  if (const auto error = inner.finish()) call.fail(*error);
}

// Calls that were answered before, for the template.
JsonArray read_calls(Fields& fields, JsonArray calls) {
  fields.each_element("tool_calls", calls, check_call);
  if (fields.failed()) return {};
  for (Json& call : calls) {
    JsonObject& said = call.get_object();
    for (const std::string_view name : kNoted) said.stable_erase(name);
    for (const std::string_view name : kNotedOfFunction) said["function"].get_object().stable_erase(name);
  }
  return calls;
}

// One message; mistakes are left in `fields`.
JsonObject read_message(Fields& fields) {
  JsonObject message;
  const auto role = fields.needed_string("role");
  if (role && std::ranges::find(kRoles, *role) == kRoles.end()) {
    fields.fail("role", "invalid_value",
                "'" + fields.full_name("role") + "' must be one of system, developer, user, assistant, tool, not " +
                    shown(Json(*role)) + ".");
  }
  if (fields.failed()) return message;
  message["role"] = *role;
  const JsonArray* calls = *role == "assistant" ? fields.array("tool_calls") : nullptr;
  const Json* content = calls ? fields.any("content") : fields.required("content");
  if (content) read_text_content(fields, *content, "content", kText);  // the template joins its parts
  message["content"] = content ? *content : Json("");
  if (calls) message["tool_calls"] = read_calls(fields, *calls);
  if (*role == "tool") {
    if (const auto id = fields.string("tool_call_id")) message["tool_call_id"] = *id;
  }
  if (*role == "assistant") {
    for (const char* name : {"reasoning_content", "reasoning"})
      if (const auto thought = fields.string(name)) message["reasoning_content"] = *thought;
    fields.refuse("audio", "the model can't hear");
    fields.refuse("function_call", "use 'tool_calls'");
    fields.refuse("refusal", "put what was said into 'content'");
    // Of an answer that is sent back as it came.
    static constexpr std::string_view kAnswerOnly[] = {"annotations", "parsed"};
    fields.ignore(kAnswerOnly);
  }
  if (const auto name = fields.string("name")) message["name"] = *name;
  return message;
}

JsonArray read_messages(Fields& fields) {
  JsonArray out;
  const Json* messages = fields.required("messages");
  if (!messages) return out;
  if (!messages->is_array() || messages->get_array().empty()) {
    fields.fail("messages", messages->is_array() ? "invalid_value" : "invalid_type",
                "'messages' must be an array with at least one message, not " +
                    std::string(messages->is_array() ? "an empty one" : shown(*messages)) + ".");
    return out;
  }
  fields.each_element("messages", messages->get_array(), [&](Fields& message) { out.push_back(read_message(message)); });
  return out;
}

void read_chat_lengths(Fields& fields, GenerationCall& call) {
  const auto old_name = fields.integer("max_tokens", 1, INT32_MAX);
  const auto new_name = fields.integer("max_completion_tokens", 1, INT32_MAX);
  if (old_name && new_name && *old_name != *new_name) {
    fields.fail("max_tokens", "invalid_value",
                "'max_tokens' and 'max_completion_tokens' are two names of one limit; send one.");
  }
  if (const auto limit = new_name ? new_name : old_name) call.max_tokens = static_cast<int>(*limit);
  check_min_tokens(fields, call, new_name ? "max_completion_tokens" : "max_tokens");
}

void read_chat_logprobs(Fields& fields, engine::Request& request) {
  request.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  request.top_logprobs = static_cast<int>(top.value_or(0));
  if (request.top_logprobs > 0 && !request.logprobs)
    fields.fail("top_logprobs", "invalid_value", "'top_logprobs' needs 'logprobs': true.");
}

// llama.cpp's reasoning_format, vLLM's include_reasoning.
void read_reasoning(Fields& fields, ChatCall& call) {
  if (const auto format = fields.string("reasoning_format")) {
    call.split_reasoning = *format != "none";
    if (*format != "none" && *format != "auto" && *format != "deepseek")
      fields.fail("reasoning_format", "invalid_value",
                  "'reasoning_format' must be auto, deepseek or none, not " + shown(Json(*format)) + ".");
  }
  call.tell_reasoning = fields.boolean("include_reasoning").value_or(true);
}

}  // namespace

text::ChatInput read_chat_input(Fields& fields, ToolCall& tools) {
  text::ChatInput input;
  input.messages = read_messages(fields);
  tools = read_tools(fields);
  input.tools = std::move(tools.listed);
  input.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  input.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(!input.continue_final_message);
  if (input.continue_final_message && input.add_generation_prompt) {
    fields.fail("continue_final_message", "invalid_value",
                "'continue_final_message' and 'add_generation_prompt' can't both be true.");
  }
  if (const JsonObject* variables = fields.object("chat_template_kwargs")) {
    for (const std::string_view own : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"}) {
      if (variables->contains(own))
        fields.fail("chat_template_kwargs", "invalid_value",
                    "'chat_template_kwargs' can't set '" + std::string(own) + "'; the server does.");
    }
    input.variables = *variables;
  }
  return input;
}

Parsed<ChatCall> parse_chat(const Json& body, const ModelFacts& model) {
  if (!body.is_object())
    return ApiError{.message = "The body must be a JSON object, not " + shown(body) + ".", .code = "invalid_type"};
  Fields fields(body.get_object());
  ChatCall call;
  call.generation = read_generation(fields, model);
  read_chat_lengths(fields, call.generation);
  read_chat_logprobs(fields, call.generation.request);
  call.input = read_chat_input(fields, call.tools);
  read_reasoning(fields, call);
  fields.refuse(kRefused);
  check_neutral(fields);
  fields.ignore(kNoEffect);
  if (const auto error = fields.finish()) return *error;
  return call;
}

}  // namespace unisono::serve
