#include "serve/anthropic_messages.h"

#include "serve/text_content.h"

namespace unisono::serve {

namespace {

// Anthropic has these fields; they don't change the answer here.
constexpr std::string_view kNoEffect[] = {"metadata", "service_tier", "cache_control", "inference_geo", "user_profile_id"};
constexpr std::string_view kTextTypes[] = {"text"};
constexpr std::string_view kBlockNoEffect[] = {"cache_control"};
constexpr TextParts kText{.types = kTextTypes, .no_effect = kBlockNoEffect};

constexpr Fields::Refused kRefused[] = {
    {"container", "this server runs no code"},
    {"mcp_servers", "this server calls no other servers"},
    {"context_management", "this server doesn't edit conversations; 'truncation' cuts them"},
};

// Messages of blocks to the messages of a chat: results of tools are messages of their own, and turns of the same role
// that follow each other are one.
class Turns {
 public:
  void add(Fields& message) {
    const auto role = message.needed_string("role");
    if (role && *role != "user" && *role != "assistant")
      message.fail("role", "invalid_value",
                   "'" + message.full_name("role") + "' must be user or assistant, not " + shown(Json(*role)) +
                       "; use 'system' for the system's text.");
    const Json* content = message.required("content");
    if (role && content && !message.failed()) read_content(message, *role, *content);
  }

  JsonArray messages{};

 private:
  void read_content(Fields& fields, const std::string& role, const Json& content) {
    if (!content.is_array()) return say(role, read_text_content(fields, content, "content", kText));
    if (content.get_array().empty())
      fields.fail("content", "invalid_value", "'" + fields.full_name("content") + "' must have at least one block.");
    fields.each_element("content", content.get_array(), [&](Fields& block) {
      block.ignore(kBlockNoEffect);
      read_block(block, role);
    });
  }

  void read_block(Fields& block, const std::string& role) {
    const std::string type = block.string("type").value_or("");
    if (type == "tool_use" && role == "assistant") return read_call(block);
    if (type == "tool_result" && role == "user") return read_result(block);
    if (type == "thinking" && role == "assistant") {
      static constexpr std::string_view kSignature[] = {"signature"};
      block.ignore(kSignature);
      const auto thought = block.needed_string("thinking");
      return append(turn(role)["reasoning_content"], thought.value_or(""));
    }
    static constexpr std::string_view kCitations[] = {"citations"};
    if (role == "assistant") block.ignore(kCitations);  // of an answer that is sent back as it came
    say(role, read_text_part(block, kText));
  }

  void read_call(Fields& block) {
    static constexpr std::string_view kCaller[] = {"caller"};
    block.ignore(kCaller);
    block.refuse("toolset_name", "tools have no sets here");
    const auto id = block.needed_string("id"), name = block.needed_string("name");
    const JsonObject* input = block.object("input");
    if (!input) block.required("input");
    if (block.failed()) return;
    add_call(turn("assistant"), *id, *name, to_text(*input));
  }

  void read_result(Fields& block) {
    const auto id = block.needed_string("tool_use_id");
    block.boolean("is_error");  // the content says what went wrong
    const Json* content = block.any("content");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", id.value_or("")},
                        {"content", content ? read_text_content(block, *content, "content", kText) : ""}});
  }

  void say(const std::string& role, std::string text) { append(turn(role)["content"], std::move(text)); }

  static void append(Json& to, std::string text) {
    to = to.is_null() ? std::move(text) : std::string(to.get_string()) + "\n" + text;
  }

  JsonObject& turn(const std::string& role) {
    if (messages.empty() || messages.back().get_object()["role"] != Json(role))
      messages.push_back({{"role", role}, {"content", nullptr}});
    return messages.back().get_object();
  }
};

JsonArray read_turns(Fields& fields) {
  Turns turns;
  if (const Json* system = fields.any("system"))
    turns.messages.push_back({{"role", "system"}, {"content", read_text_content(fields, *system, "system", kText)}});
  const Json* messages = fields.required("messages");
  if (!messages) return {};
  if (!messages->is_array() || messages->get_array().empty()) {
    fields.fail("messages", messages->is_array() ? "invalid_value" : "invalid_type",
                "'messages' must be an array with at least one message, not " +
                    std::string(messages->is_array() ? "an empty one" : shown(*messages)) + ".");
    return {};
  }
  fields.each_element("messages", messages->get_array(), [&](Fields& message) { turns.add(message); });
  fill_contents(turns.messages);
  return std::move(turns.messages);
}

// {"name", "description", "input_schema"} to OpenAI's {"type": "function", "function": {"name", "description",
// "parameters"}}.
JsonArray translated_tools(Fields& fields, const JsonArray& tools) {
  JsonArray out;
  for (size_t i = 0; i < tools.size(); i++) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    const JsonObject* tool = tools[i].if_object();
    const Json* type = tool ? tool->if_contains("type") : nullptr;
    if (!tool || (type && !type->is_null() && *type != "custom")) {
      fields.fail(
          {.message = "'" + path +
                      "' must be an object with name, description and input_schema; the server has no tools of its own.",
           .param = type ? path + ".type" : path,
           .code = "unsupported_value"});
      break;
    }
    JsonObject function;
    for (const auto& [key, value] : *tool) {
      if (key == "type" || key == "cache_control") continue;
      function[key == "input_schema" ? "parameters" : key] = value;
    }
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

// {"type": "auto" | "any" | "tool" | "none", "name", "disable_parallel_tool_use"}
void translate_choice(Fields& fields, JsonObject& translated) {
  const JsonObject* choice = fields.object("tool_choice");
  if (!choice) return;
  Fields inner(*choice, "tool_choice.");
  const auto type = inner.string("type"), name = inner.string("name");
  if (!type) inner.required("type");
  translated["parallel_tool_calls"] = !inner.boolean("disable_parallel_tool_use").value_or(false);
  if (type == "auto" || type == "none") {
    translated["tool_choice"] = *type;
  } else if (type == "any") {
    translated["tool_choice"] = "required";
  } else if (type == "tool") {
    if (!name) inner.required("name");
    translated["tool_choice"] = {{"type", "function"}, {"function", {{"name", name.value_or("")}}}};
  } else if (type) {
    inner.fail("type", "invalid_value",
               "'tool_choice.type' must be auto, any, tool or none, not " + shown(Json(*type)) + ".");
  }
  if (const auto error = inner.finish()) fields.fail(*error);
}

void read_message_tools(Fields& fields, ChatCall& call) {
  JsonObject translated;
  if (const JsonArray* tools = fields.array("tools")) translated["tools"] = translated_tools(fields, *tools);
  translate_choice(fields, translated);
  if (fields.failed()) return;
  Fields reader(translated);
  call.tools = read_tools(reader);
  call.input.tools = std::move(call.tools.listed);
  if (auto error = reader.finish())
    fields.fail(renamed(*std::move(error), {{".function.parameters", ".input_schema"}, {".function", ""}}));
}

// What thoughts may take of the answer.
std::optional<int> read_budget(Fields& thinking, std::optional<int> max_tokens) {
  const auto budget = thinking.integer("budget_tokens", 1, INT32_MAX);
  if (!budget) thinking.required("budget_tokens");
  if (!budget) return {};
  if (max_tokens && *budget >= *max_tokens)
    thinking.fail("budget_tokens", "invalid_value",
                  "'thinking.budget_tokens' must be less than 'max_tokens' (" + std::to_string(*max_tokens) + "), not " +
                      std::to_string(*budget) + ".");
  return static_cast<int>(*budget);
}

// {"type": "enabled" | "adaptive" | "disabled", "budget_tokens", "display"}. The variables are those by which templates
// know whether to think, and Seed-OSS's for how long.
void read_thinking(Fields& fields, ChatCall& call) {
  const JsonObject* thinking = fields.object("thinking");
  if (!thinking) return;
  Fields inner(*thinking, "thinking.");
  const auto type = inner.needed_string("type");
  const bool thinks = type == "enabled" || type == "adaptive";
  if (type && !thinks && type != "disabled")
    inner.fail("type", "unsupported_value",
               "'thinking.type' must be enabled, adaptive or disabled, not " + shown(Json(*type)) + ".");
  for (const char* name : {"enable_thinking", "thinking"}) call.input.variables[name] = thinks;
  call.tell_reasoning = thinks;
  if (thinks) {
    call.thinking = ChatCall::Thinking{.field = "thinking.type"};
    if (type == "enabled") call.thinking->budget = read_budget(inner, call.generation.max_tokens);
    if (call.thinking->budget) call.input.variables["thinking_budget"] = *call.thinking->budget;
    const auto display = inner.string("display");
    call.tell_reasoning = display != "omitted";
    if (display && *display != "omitted" && *display != "summarized")
      inner.fail("display", "invalid_value",
                 "'thinking.display' must be summarized or omitted, not " + shown(Json(*display)) + ".");
    if (call.input.continue_final_message)
      inner.fail("type", "unsupported_value",
                 "'thinking.type' can't be " + *type +
                     " when the last message is the assistant's: thoughts begin an answer, and this one has begun.");
  }
  if (const auto error = inner.finish()) fields.fail(*error);
}

// {"format": {"type": "json_schema", "schema"}}
void read_output_config(Fields& fields, GenerationCall& call) {
  const JsonObject* config = fields.object("output_config");
  if (!config) return;
  Fields inner(*config, "output_config.");
  inner.refuse("effort", "the model doesn't know of it");
  if (const JsonObject* format = inner.object("format")) {
    Fields described(*format, "output_config.format.");
    const auto type = described.string("type");
    if (type != "json_schema")
      described.fail("type", "unsupported_value", "'output_config.format.type' must be json_schema.");
    if (const Json* schema = described.required("schema")) {
      const JsonObject translated{{"json_schema", *schema}};
      Fields reader(translated);
      call.constraint = read_constraint(reader);
      if (call.constraint) {
        call.constraint->field = "output_config.format.schema";
      }
      if (auto error = reader.finish())
        described.fail(renamed(*std::move(error), {{"json_schema", "output_config.format.schema"}}));
    }
    if (const auto error = described.finish()) inner.fail(*error);
  }
  if (const auto error = inner.finish()) fields.fail(*error);
}

Parsed<ChatCall> parse(const Json& body, const ModelFacts& model, bool counts_only) {
  if (!body.is_object())
    return ApiError{.message = "The body must be a JSON object, not " + shown(body) + ".", .code = "invalid_type"};
  Fields fields(body.get_object());
  ChatCall call;
  GenerationCall& generation = call.generation;
  generation = read_common(fields, model, "stop_sequences");
  generation.stream = fields.boolean("stream").value_or(false);
  if (const auto limit = fields.integer("max_tokens", 1, INT32_MAX)) {
    generation.max_tokens = static_cast<int>(*limit);
  } else if (!counts_only) {
    fields.required("max_tokens");
  }
  check_min_tokens(fields, generation, "max_tokens");
  call.input.messages = read_turns(fields);
  // An answer goes on from what it is said to begin with.
  call.input.continue_final_message =
      !fields.failed() && call.input.messages.get_array().back().get_object()["role"] == "assistant";
  call.input.add_generation_prompt = !call.input.continue_final_message;
  read_message_tools(fields, call);
  read_thinking(fields, call);
  read_output_config(fields, generation);
  fields.refuse(kRefused);
  fields.ignore(kNoEffect);
  if (const auto error = fields.finish()) return *error;
  return call;
}

const char* error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

Parsed<ChatCall> parse_messages(const Json& body, const ModelFacts& model) { return parse(body, model, false); }
Parsed<ChatCall> parse_count_tokens(const Json& body, const ModelFacts& model) { return parse(body, model, true); }

std::string anthropic_error_body(const ApiError& error) {
  return to_text(JsonObject{{"type", "error"},
                            {"error", {{"type", error_type(error.status)}, {"message", shortened(error.message)}}}});
}

HttpResponse anthropic_error_response(const ApiError& error) {
  HttpResponse response = error_response(error);
  response.body = anthropic_error_body(error);
  return response;
}

}  // namespace unisono::serve
