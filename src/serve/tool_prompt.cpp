#include "serve/tool_prompt.h"

#include <string>

namespace unisono::serve {

namespace {

std::string call_text(const ToolSyntax& syntax, const std::string& name, const std::string& arguments) {
  return std::string(syntax.before_name) + name + std::string(syntax.before_arguments) + arguments +
         std::string(syntax.after_arguments);
}

std::string calls_text(const ToolSyntax& syntax, const std::string& calls) {
  return std::string(syntax.trigger) + std::string(syntax.first) + calls + std::string(syntax.last);
}

std::string explanation(const Json& tools, const ToolSyntax& syntax) {
  std::string text = "You can call these functions, each described by a JSON object:\n";
  for (const Json& tool : tools.get_array()) text += to_text(tool) + "\n";
  text += "\nTo call one, write its name and its arguments like this:\n";
  text += calls_text(syntax, call_text(syntax, "function-name", "{\"argument\": \"value\"}"));
  return text + "\nThe result comes in the next message. Without a call, just answer.";
}

// Puts a text at the end of a message's content, or at its beginning, as a paragraph or a part of its own.
void add_text(Json& content, const std::string& text, bool at_end) {
  if (content.is_array()) {
    JsonArray& parts = content.get_array();
    const Json part{{"type", "text"}, {"text", text}};
    parts.insert(at_end ? parts.end() : parts.begin(), part);
  } else {
    const std::string old = content.is_string() ? std::string(content.get_string()) : "";
    const std::string gap = old.empty() ? "" : "\n";
    content = at_end ? old + gap + text : text + gap + old;
  }
}

void tell(JsonArray& messages, const std::string& text, std::string_view chat_template) {
  const auto role = [&](size_t i) { return i < messages.size() ? messages[i].get_object()["role"] : Json(); };
  if (role(0) == "system") return add_text(messages[0].get_object()["content"], "\n" + text, true);
  // Templates that refuse a system's message say so in these words.
  const bool refuses = chat_template.find("System role not supported") != chat_template.npos;
  if (refuses && role(0) == "user") return add_text(messages[0].get_object()["content"], text + "\n", false);
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
}

void write_calls(JsonObject& message, const ToolSyntax& syntax) {
  std::string written;
  for (const Json& call : message["tool_calls"].get_array()) {
    const JsonObject& function = call.at("function").get_object();
    const Json* arguments = function.if_contains("arguments");
    const bool is_text = arguments && arguments->is_string();
    const std::string text = is_text ? std::string(arguments->get_string()) : arguments ? to_text(*arguments) : "{}";
    written += (written.empty() ? "" : std::string(syntax.between)) +
               call_text(syntax, std::string(function.at("name").get_string()), text);
  }
  message.erase("tool_calls");
  if (!written.empty()) add_text(message["content"], calls_text(syntax, written), true);
}

}  // namespace

void write_tools(text::ChatInput& input, const ToolSyntax& syntax, std::string_view chat_template) {
  JsonArray out;
  bool after_result = false;
  for (Json& given : input.messages.get_array()) {
    JsonObject message = std::move(given.get_object());
    const bool result = message["role"] == "tool";
    if (message.contains("tool_calls")) write_calls(message, syntax);
    if (result) {
      add_text(message["content"], "<tool_response>", false);
      add_text(message["content"], "</tool_response>", true);
      message["role"] = "user";
      message.erase("tool_call_id");
    }
    // Results of several calls are one message: many templates want users and assistants to take turns.
    Json* last = after_result && result ? &out.back().get_object()["content"] : nullptr;
    if (last && last->is_string() && message["content"].is_string()) {
      add_text(*last, std::string(message["content"].get_string()), true);
    } else {
      out.push_back(std::move(message));
    }
    after_result = result;
  }
  if (input.tools.is_array() && !input.tools.get_array().empty())
    tell(out, explanation(input.tools, syntax), chat_template);
  input.tools = nullptr;
  input.messages = std::move(out);
}

}  // namespace unisono::serve
