#include "serve/openai_responses.h"

#include <algorithm>
#include <array>

#include "serve/text_content.h"

namespace unisono::serve {

namespace {

// OpenAI has these fields; they don't change the answer here.
constexpr std::string_view kNoEffect[] = {"user",
                                          "safety_identifier",
                                          "service_tier",
                                          "prompt_cache_key",
                                          "prompt_cache_retention",
                                          "prompt_cache_options",
                                          "max_tool_calls"};
constexpr std::string_view kTypes[] = {"input_text", "output_text", "text"};
constexpr std::string_view kPartNoEffect[] = {"annotations", "logprobs", "parsed", "prompt_cache_breakpoint"};
constexpr TextParts kParts{.types = kTypes, .no_effect = kPartNoEffect};
constexpr std::string_view kReasoningTypes[] = {"reasoning_text"};
constexpr TextParts kReasoningParts{.types = kReasoningTypes, .no_effect = {}};
constexpr std::string_view kItemNoEffect[] = {"id", "status", "phase"};

constexpr Fields::Refused kRefused[] = {
    {"previous_response_id", "this server keeps no responses; send the whole conversation as 'input'"},
    {"conversation", "this server keeps no conversations; send the whole conversation as 'input'"},
    {"prompt", "this server keeps no prompts; send it as 'input'"},
    {"context_management", "this server doesn't compact conversations; 'truncation' cuts them"},
    {"moderation", "this server doesn't moderate"},
    {"reasoning", "what a chat template knows of it can be set by /v1/chat/completions"},
};

// Items of a conversation to the messages of a chat. What one turn of the assistant says, thinks and calls is one message.
class Items {
 public:
  void add(Fields& item) {
    item.ignore(kItemNoEffect);
    const std::string type = item.string("type").value_or("message");
    if (type == "message") {
      message(item);
    } else if (type == "reasoning") {
      reasoning(item);
    } else if (type == "function_call") {
      call(item);
    } else if (type == "function_call_output") {
      output(item);
    } else {
      item.fail("type", "unsupported_value",
                "'" + item.full_name("type") + "' can be message, reasoning, function_call or function_call_output here, not " +
                    shown(Json(type)) + ".");
    }
  }

  JsonArray messages{};

 private:
  void message(Fields& item) {
    const auto role = item.needed_string("role");
    constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
    if (role && std::ranges::find(kRoles, *role) == kRoles.end())
      item.fail(
          "role", "invalid_value",
          "'" + item.full_name("role") + "' must be user, assistant, system or developer, not " + shown(Json(*role)) + ".");
    const Json* content = item.required("content");
    if (!role || !content) return;
    std::string text = read_text_content(item, *content, "content", kParts);
    JsonObject* turn = *role == "assistant" ? open_turn() : nullptr;
    if (turn && turn->at("content").is_null() && !turn->contains("tool_calls")) {
      turn->at("content") = std::move(text);
    } else {
      messages.push_back({{"role", *role}, {"content", std::move(text)}});
    }
  }

  void reasoning(Fields& item) {
    static constexpr std::string_view kSummary[] = {"summary", "encrypted_content"};
    item.ignore(kSummary);
    const Json* content = item.any("content");
    if (!content) return;
    assistant()["reasoning_content"] = read_text_content(item, *content, "content", kReasoningParts);
  }

  void call(Fields& item) {
    static constexpr std::string_view kNoted[] = {"caller", "parsed_arguments"};
    item.ignore(kNoted);
    for (const char* name : {"async", "async_"})  // the field, and the openai client's name of it
      if (item.boolean(name).value_or(false)) item.refuse(name, "a call's result is an item of the conversation here");
    item.refuse("namespace", "tools have no namespaces here");
    const auto id = item.needed_string("call_id"), name = item.needed_string("name"), arguments = item.needed_string("arguments");
    if (item.failed()) return;
    JsonObject* turn = open_turn();
    add_call(turn ? *turn : assistant(), *id, *name, *arguments);
  }

  void output(Fields& item) {
    const auto id = item.needed_string("call_id");
    const Json* result = item.required("output");
    if (!id || !result) return;
    messages.push_back(
        {{"role", "tool"}, {"tool_call_id", *id}, {"content", read_text_content(item, *result, "output", kParts)}});
  }

  // The assistant's message that the conversation ends with, or nothing.
  JsonObject* open_turn() {
    if (messages.empty() || messages.back().get_object()["role"] != "assistant") return nullptr;
    return &messages.back().get_object();
  }
  JsonObject& assistant() {
    messages.push_back({{"role", "assistant"}, {"content", nullptr}});
    return messages.back().get_object();
  }
};

JsonArray read_messages(Fields& fields, JsonObject& told) {
  Items items;
  const auto instructions = fields.string("instructions");
  told["instructions"] = instructions ? Json(*instructions) : Json(nullptr);
  if (instructions) items.messages.push_back({{"role", "system"}, {"content", *instructions}});
  const Json* input = fields.required("input");
  if (!input) return {};
  if (input->is_string()) {
    items.messages.push_back({{"role", "user"}, {"content", input->get_string()}});
  } else if (!input->is_array() || input->get_array().empty()) {
    fields.fail("input", input->is_array() ? "invalid_value" : "invalid_type",
                "'input' must be a string or an array with at least one item, not " +
                    std::string(input->is_array() ? "an empty one" : shown(*input)) + ".");
  } else {
    fields.each_element("input", input->get_array(), [&](Fields& item) { items.add(item); });
  }
  fill_contents(items.messages);
  return std::move(items.messages);
}

// {"format": {"type", "name", "schema", "strict", "description"}, "verbosity"}: the same constraints as a chat's
// response_format, a little flatter.
void read_text(Fields& fields, ChatCall& call, JsonObject& told) {
  told["text"] = {{"format", {{"type", "text"}}}};
  const JsonObject* text = fields.object("text");
  if (!text) return;
  Fields inner(*text, "text.");
  if (const auto verbosity = inner.string("verbosity"); verbosity && *verbosity != "medium")
    inner.fail("verbosity", "unsupported_value", "'text.verbosity' can only be medium here: the model doesn't know of it.");
  const JsonObject* format = inner.object("format");
  if (format) {
    told["text"] = {{"format", *format}};
    // As chats have it, so that it is read in one place.
    JsonObject nested = *format;
    if (nested.contains("type") && nested["type"] == "json_schema") {
      nested.erase("type");
      nested = {{"type", "json_schema"}, {"json_schema", std::move(nested)}};
    }
    const JsonObject translated{{"response_format", std::move(nested)}};
    Fields reader(translated);
    call.generation.constraint = read_constraint(reader);
    if (auto& constraint = call.generation.constraint) {
      constraint->field = constraint->field.ends_with("schema") ? "text.format.schema" : "text.format";
    }
    if (auto error = reader.finish())
      inner.fail(
          renamed(*std::move(error), {{"response_format.json_schema", "text.format"}, {"response_format", "text.format"}}));
  }
  if (const auto error = inner.finish()) fields.fail(*error);
}

// Tools are flat here: {"type": "function", "name", "description", "parameters", "strict"}.
JsonArray nested_tools(Fields& fields, const JsonArray& tools) {
  JsonArray out;
  for (size_t i = 0; i < tools.size(); i++) {
    const JsonObject* tool = tools[i].if_object();
    if (!tool || !tool->contains("type") || tool->at("type") != "function") {
      const std::string path = "tools[" + std::to_string(i) + "]";
      fields.fail({.message = "'" + path + "' must be an object of type function; others aren't held here.",
                   .param = tool ? path + ".type" : path,
                   .code = "unsupported_value"});
      break;
    }
    JsonObject function = *tool;
    function.erase("type");
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

Json nested_choice(const Json& choice) {
  if (!choice.is_object()) return choice;
  JsonObject out = choice.get_object();
  const auto nest = [](JsonObject& one) {
    if (!one.contains("name")) return;
    one["function"] = {{"name", one["name"]}};
    one.erase("name");
  };
  nest(out);
  if (out.contains("type") && out["type"] == "allowed_tools") {
    JsonObject inner = out;
    inner.erase("type");
    if (Json* tools = inner.if_contains("tools"); tools && tools->is_array()) {
      for (Json& tool : tools->get_array())
        if (tool.is_object()) nest(tool.get_object());
    }
    out = {{"type", "allowed_tools"}, {"allowed_tools", std::move(inner)}};
  }
  return out;
}

void read_response_tools(Fields& fields, ChatCall& call, JsonObject& told) {
  JsonObject translated;
  told["tools"] = JsonArray();
  if (const JsonArray* tools = fields.array("tools")) {
    translated["tools"] = nested_tools(fields, *tools);
    told["tools"] = *tools;
    for (Json& tool : told["tools"].get_array())
      for (const char* field : {"description", "parameters", "strict"})
        if (tool.is_object() && !tool.get_object().contains(field)) tool.get_object()[field] = nullptr;
  }
  const Json* choice = fields.any("tool_choice");
  if (choice) translated["tool_choice"] = nested_choice(*choice);
  told["tool_choice"] = choice ? *choice : Json("auto");
  const auto parallel = fields.boolean("parallel_tool_calls");
  translated["parallel_tool_calls"] = parallel.value_or(true);
  told["parallel_tool_calls"] = parallel.value_or(true);
  if (fields.failed()) return;
  Fields reader(translated);
  call.tools = read_tools(reader);
  call.input.tools = std::move(call.tools.listed);
  if (auto error = reader.finish())
    fields.fail(renamed(*std::move(error), {{".function", ""}, {"tool_choice.allowed_tools", "tool_choice"}}));
}

void read_metadata(Fields& fields, JsonObject& told) {
  const JsonObject* metadata = fields.object("metadata");
  told["metadata"] = metadata ? *metadata : JsonObject();
  if (metadata && std::ranges::any_of(*metadata, [](const auto& entry) { return !entry.value().is_string(); }))
    fields.fail("metadata", "invalid_type", "'metadata' must map names to strings.");
}

// "message.output_text.logprobs" among what is to be included; the others are about items that don't occur here.
bool read_include(Fields& fields) {
  constexpr std::array<std::string_view, 7> kWithoutEffect = {"file_search_call.results",
                                                              "web_search_call.results",
                                                              "web_search_call.action.sources",
                                                              "message.input_image.image_url",
                                                              "computer_call_output.output.image_url",
                                                              "code_interpreter_call.outputs",
                                                              "reasoning.encrypted_content"};
  const JsonArray* include = fields.array("include");
  bool logprobs = false;
  if (!include) return logprobs;
  for (const Json& one : *include) {
    if (one == "message.output_text.logprobs") {
      logprobs = true;
    } else if (!one.is_string() ||
               std::ranges::find(kWithoutEffect, std::string_view(one.get_string())) == kWithoutEffect.end()) {
      fields.fail("include", "invalid_value", "'include' can't have " + shown(one) + ".");
    }
  }
  return logprobs;
}

void read_logprobs(Fields& fields, engine::Request& request, JsonObject& told) {
  request.logprobs = read_include(fields);
  const auto top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  request.top_logprobs = static_cast<int>(top.value_or(0));
  told["top_logprobs"] = request.top_logprobs;
  if (request.top_logprobs > 0 && !request.logprobs)
    fields.fail("top_logprobs", "invalid_value", "'top_logprobs' needs 'include': [\"message.output_text.logprobs\"].");
}

// What would ask the server to remember or to work without a client.
void check_stateless(Fields& fields, JsonObject& told) {
  if (fields.boolean("store").value_or(false))
    fields.fail("store", "unsupported_value", "'store' can only be false here: this server keeps no responses.");
  if (fields.boolean("background").value_or(false))
    fields.fail("background", "unsupported_value",
                "'background' can only be false here: a response ends with its request.");
  fields.refuse(kRefused);
  told["store"] = false;
  told["background"] = false;
  told["previous_response_id"] = nullptr;
}

}  // namespace

Parsed<ResponseCall> parse_response(const Json& body, const ModelFacts& model) {
  if (!body.is_object())
    return ApiError{.message = "The body must be a JSON object, not " + shown(body) + ".", .code = "invalid_type"};
  const JsonObject& object = body.get_object();
  Fields fields(object);
  ResponseCall call;
  GenerationCall& generation = call.chat.generation;
  generation = read_common(fields, model);
  read_stream(fields, generation, false);
  const auto limit = fields.integer("max_output_tokens", 1, INT32_MAX);
  if (limit) generation.max_tokens = static_cast<int>(*limit);
  check_min_tokens(fields, generation, "max_output_tokens");
  call.told["max_output_tokens"] = limit ? Json(*limit) : Json(nullptr);
  for (const char* name : {"temperature", "top_p"}) {
    const Json* value = object.if_contains(name);
    call.told[name] = value && !value->is_null() ? *value : Json(1.0);
  }
  call.told["truncation"] = generation.truncation.automatic ? "auto" : "disabled";
  call.chat.input.messages = read_messages(fields, call.told);
  read_text(fields, call.chat, call.told);
  read_response_tools(fields, call.chat, call.told);
  read_logprobs(fields, generation.request, call.told);
  read_metadata(fields, call.told);
  check_stateless(fields, call.told);
  fields.ignore(kNoEffect);
  if (const auto error = fields.finish()) return *error;
  return call;
}

}  // namespace unisono::serve
