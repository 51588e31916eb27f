#include "text/chat_template.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"
#include "text/jinja_walk.h"

namespace unisono::text {

namespace {

using jinja::Expr;
using jinja::Op;

constexpr std::string_view kSubject = "chat template";
// Put at the end of the message to be continued, to find in what was rendered where that is: as transformers does. The
// space shows whether the template strips messages.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

Error refuse(std::string message, std::string subject) { return Error{std::move(message), std::move(subject)}; }

bool is_content(const Expr& expr) {
  switch (expr.op) {
    case Op::name: return expr.name.ends_with("content");
    case Op::attribute: return expr.attribute == "content";
    case Op::item: return expr.parts[1]->constant.text() != nullptr && expr.parts[1]->constant.text()->view() == "content";
    case Op::slice:
    case Op::filter: return is_content(*expr.parts[0]);
    default: return false;
  }
}

bool filters_content(const Expr& expr) {
  const std::string& name = expr.attribute;
  bool takes_lists = name == "selectattr" || name == "rejectattr" || name == "map" || name == "sort";
  if (expr.op == Op::filter && takes_lists && is_content(*expr.parts[0])) return true;
  bool found = false;
  jinja::for_each_part(expr, [&](const Expr& part) { found = found || filters_content(part); });
  return found;
}

// Whether the template goes through the parts of a message's content, so that it can be given a list.
bool takes_parts(const jinja::Function& root) {
  bool found = false;
  jinja::for_each(
      root.body,
      [&](const jinja::Stmt& stmt) { found = found || (stmt.act == jinja::Act::loop && is_content(*stmt.value)); },
      [&](const Expr& expr) { found = found || filters_content(expr); });
  return found;
}

std::string at(std::string_view list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

// The text of a part of a message's content, or why it is none.
Result<std::string_view> text_of_part(const Json& part, const std::string& where) {
  const JsonObject* object = part.if_object();
  const Json* type = object != nullptr ? object->if_contains("type") : nullptr;
  if (type == nullptr || !type->is_string())
    return refuse("A part of a message's content must be an object with a type.", where);
  std::string name(type->get_string().c_str());
  if (name != "text") return refuse("The content part type '" + name + "' is not supported: only 'text' is.", where);
  const Json* text = object->if_contains("text");
  if (text == nullptr || !text->is_string()) return refuse("A part of type 'text' needs a text.", where);
  return std::string_view(text->get_string().data(), text->get_string().size());
}

// Content given as parts stays as it is for templates that take parts; for others the texts become lines of one text.
Result<void> prepare_content(JsonObject& message, bool takes_parts, const std::string& where) {
  Json* content = message.if_contains("content");
  if (content == nullptr || !content->is_array()) return {};
  std::string joined;
  for (size_t i = 0; i < content->get_array().size(); ++i) {
    Result<std::string_view> text = text_of_part(content->get_array()[i], where + "." + at("content", i));
    if (!text) return text.error();
    if (i > 0) joined += "\n";
    joined += *text;
  }
  if (!takes_parts) *content = joined;
  return {};
}

// OpenAI's requests carry the arguments of calls as JSON in a string; templates want the value.
Result<void> prepare_call(Json& call, const std::string& where) {
  JsonObject* object = call.if_object();
  if (object == nullptr) return refuse("A tool call must be an object.", where);
  Json* function = object->if_contains("function");
  if (function == nullptr) return {};
  if (!function->is_object()) return refuse("The function of a tool call must be an object.", where + ".function");
  Json& arguments = function->get_object()["arguments"];
  if (arguments.is_null() || (arguments.is_string() && arguments.get_string().empty())) {
    arguments = JsonObject();
  } else if (arguments.is_string()) {
    Result<Json> value = parse_json({arguments.get_string().data(), arguments.get_string().size()});
    if (!value)
      return refuse("The arguments of a tool call are not valid JSON: " + value.error().message,
                    where + ".function.arguments");
    arguments = *std::move(value);
  }
  return {};
}

Result<JsonArray> prepare_messages(const Json& messages, bool takes_parts) {
  if (!messages.is_array()) return refuse("'messages' must be an array.", "messages");
  JsonArray prepared = messages.get_array();
  for (size_t i = 0; i < prepared.size(); ++i) {
    std::string where = at("messages", i);
    JsonObject* message = prepared[i].if_object();
    if (message == nullptr) return refuse("A message must be an object.", where);
    if (Result<void> done = prepare_content(*message, takes_parts, where); !done) return done.error();
    Json* calls = message->if_contains("tool_calls");
    if (calls == nullptr || !calls->is_array()) continue;
    for (size_t j = 0; j < calls->get_array().size(); ++j)
      if (Result<void> done = prepare_call(calls->get_array()[j], where + "." + at("tool_calls", j)); !done)
        return done.error();
  }
  return prepared;
}

// Puts the mark at the end of the last message and gives the text before it.
Result<std::string> mark_last_message(JsonArray& messages) {
  Json* content = messages.empty() ? nullptr : messages.back().get_object().if_contains("content");
  if (content != nullptr && content->is_array() && !content->get_array().empty())
    content = content->get_array().back().get_object().if_contains("text");
  if (content == nullptr || !content->is_string())
    return refuse("The last message has no text that could be continued.", "continue_final_message");
  std::string text(content->get_string().data(), content->get_string().size());
  *content = text + std::string(kMark);
  return text;
}

void cut(MarkedText& text, size_t end) {
  text.text.resize(end);
  while (!text.from_user.empty() && text.from_user.back().begin >= end) text.from_user.pop_back();
  if (!text.from_user.empty()) text.from_user.back().end = std::min(text.from_user.back().end, end);
}

// Ends the rendered text where the last message ends.
Result<void> leave_open(MarkedText& rendered, std::string_view message) {
  std::string_view mark = kMark.substr(0, kMark.size() - 1);
  size_t found = jinja::find_last(rendered.text, mark);
  std::string_view stripped = jinja::strip_left(jinja::strip_right(message));
  if (found == jinja::kNotFound || jinja::find_first(rendered.text, stripped) == jinja::kNotFound)
    return refuse("The chat template does not render the last message as it is, so it can't be continued.",
                  "continue_final_message");
  bool keeps_space = rendered.text.compare(found, kMark.size(), kMark) == 0;
  size_t end = keeps_space ? found : jinja::strip_right(std::string_view(rendered.text).substr(0, found)).size();
  cut(rendered, end);
  return {};
}

using Variables = std::unordered_map<std::string, jinja::Value>;

Result<void> add_variables(Variables& variables, jinja::Budget& budget, const JsonObject& given) {
  for (const auto& entry : given) {
    std::string name(entry.key().data(), entry.key().size());
    if (name == "messages" || name == "tools" || name == "add_generation_prompt")
      return refuse("The template variable '" + name + "' can't be set by hand: the request's own field sets it.", name);
    variables.insert_or_assign(name, jinja::from_json(budget, entry.value()));
  }
  return {};
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source, bos_token, eos_token;
  std::unique_ptr<jinja::Function> root;
  bool takes_parts = false;

  Result<MarkedText> render(const ChatInput& input, JsonArray messages, int64_t now) const;
};

// Renders messages that are prepared already.
Result<MarkedText> ChatTemplate::Impl::render(const ChatInput& input, JsonArray messages, int64_t now) const {
  jinja::Budget budget;
  Variables variables;
  int line = 1;
  try {
    variables["bos_token"] = jinja::Text::constant(bos_token);
    variables["eos_token"] = jinja::Text::constant(eos_token);
    variables["documents"] = jinja::None{};
    if (Result<void> done = add_variables(variables, budget, input.variables); !done) return done.error();
    variables["messages"] = jinja::from_json(budget, std::move(messages));
    variables["tools"] = jinja::from_json(budget, input.tools);
    variables["add_generation_prompt"] = input.add_generation_prompt;
    jinja::Machine machine(*root, variables, budget, now);
    try {
      return machine.run().marked();
    } catch (const jinja::Failure&) {
      line = machine.line();
      throw;
    }
  } catch (const jinja::Failure& failure) {
    if (failure.own_words) return refuse(failure.message, std::string(kSubject));
    return refuse("The chat template fails at line " + std::to_string(line) + ": " + failure.message,
                  std::string(kSubject));
  }
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string source, std::string bos_token, std::string eos_token) {
  auto impl = std::make_unique<Impl>(Impl{std::move(source), std::move(bos_token), std::move(eos_token), nullptr, false});
  try {
    impl->root = jinja::parse_template(impl->source);
  } catch (const jinja::Failure& failure) {
    return refuse(failure.message, std::string(kSubject));
  }
  impl->takes_parts = takes_parts(*impl->root);
  return ChatTemplate(std::move(impl));
}

Result<MarkedText> ChatTemplate::render(const ChatInput& input, int64_t now) const {
  if (input.continue_final_message && input.add_generation_prompt)
    return refuse("'continue_final_message' and 'add_generation_prompt' can't be set together.", "continue_final_message");
  if (!input.tools.is_null() && !input.tools.is_array()) return refuse("'tools' must be an array.", "tools");
  Result<JsonArray> messages = prepare_messages(input.messages, impl_->takes_parts);
  if (!messages) return messages.error();
  if (!input.continue_final_message) return impl_->render(input, *std::move(messages), now);
  Result<std::string> last = mark_last_message(*messages);
  if (!last) return last.error();
  Result<MarkedText> rendered = impl_->render(input, *std::move(messages), now);
  if (!rendered) return rendered;
  if (Result<void> done = leave_open(*rendered, *last); !done) return done.error();
  return rendered;
}

std::string_view ChatTemplate::source() const { return impl_->source; }

}  // namespace unisono::text
