#include "serve/tools.h"

#include <algorithm>
#include <array>

namespace unisono::serve {

namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxName = 64;

bool is_name(std::string_view name) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, fits);
}

// A call has the parameters that are declared, and others only if the schema speaks of them.
JsonObject closed(JsonObject schema) {
  schema["type"] = "object";
  if (!schema.contains("properties")) {
    if (schema.size() == 1)
      schema["properties"] = JsonObject();
    else
      return schema;
  }
  constexpr std::array kOpen = {"additionalProperties",
                                "unevaluatedProperties",
                                "patternProperties",
                                "allOf",
                                "anyOf",
                                "oneOf",
                                "$ref",
                                "$dynamicRef",
                                "if",
                                "dependentSchemas",
                                "dependencies"};
  if (std::ranges::none_of(kOpen, [&](const char* name) { return schema.contains(name); }))
    schema["additionalProperties"] = false;
  return schema;
}

Tool read_function(Fields& fields) {
  Tool tool;
  if (const auto name = fields.string("name")) {
    tool.name = *name;
    if (!is_name(tool.name))
      fields.fail("name", "invalid_value",
                  "'" + fields.full_name("name") + "' must be 1 to 64 letters, digits, '_', '-' or '.', not " +
                      shown(Json(*name)) + ".");
  } else {
    fields.required("name");
  }
  fields.string("description");
  fields.boolean("strict");  // arguments always belong to the schema, asked for or not
  if (const JsonObject* schema = fields.object("parameters")) tool.parameters = *schema;
  tool.where = fields.full_name("parameters");
  if (const Json* type = tool.parameters.if_contains("type"); type && *type != "object")
    fields.fail("parameters", "invalid_value", "'" + tool.where + "' must be a schema of type object.");
  tool.parameters = closed(std::move(tool.parameters));
  return tool;
}

std::vector<Tool> read_list(Fields& fields, const JsonArray& tools) {
  std::vector<Tool> out;
  if (tools.size() > kMaxTools)
    fields.fail("tools", "invalid_value", "'tools' has " + std::to_string(tools.size()) + " tools; at most 128 are taken.");
  fields.each_element("tools", tools, [&](Fields& tool) {
    const auto type = tool.needed_string("type");
    if (type && *type != "function")
      tool.fail("type", "unsupported_value",
                "'" + tool.full_name("type") + "' can only be function, not " + shown(Json(*type)) + ".");
    tool.required("function");
    const JsonObject* function = tool.object("function");
    if (!function) return;
    Fields inner(*function, tool.full_name("function."));
    out.push_back(read_function(inner));
    if (const auto error = inner.finish()) tool.fail(*error);
    const auto same = [&](const Tool& other) { return other.name == out.back().name; };
    if (!tool.failed() && std::any_of(out.begin(), out.end() - 1, same))
      tool.fail("function.name", "invalid_value", "Two tools are called '" + out.back().name + "'.");
  });
  return out;
}

// {"type": "function", "function": {"name"}}: the name.
std::string read_named(Fields& fields) {
  fields.required("function");
  const JsonObject* function = fields.object("function");
  if (!function) return {};
  Fields inner(*function, fields.full_name("function."));
  const auto name = inner.needed_string("name");
  if (const auto error = inner.finish()) fields.fail(*error);
  return name.value_or("");
}

class Choosing {
 public:
  Choosing(Fields& fields, ToolCall& call) : fields_(fields), call_(call) {}

  void run() {
    const Json* choice = fields_.any("tool_choice");
    if (!choice) return;
    if (choice->is_object()) {
      Fields inner(choice->get_object(), "tool_choice.");
      object(inner);
      if (const auto error = inner.finish()) fields_.fail(*error);
    } else {
      mode(fields_, "tool_choice", *choice, true);
    }
    if (call_.callable.empty() && call_.choice == ToolCall::Choice::required)
      fields_.fail("tool_choice", "invalid_value", "'tool_choice' asks for a call, but there are no 'tools'.");
  }

 private:
  void mode(Fields& fields, std::string_view name, const Json& value, bool may_be_none) {
    if (value == "auto") {
      call_.choice = call_.callable.empty() ? ToolCall::Choice::none : ToolCall::Choice::free;
    } else if (value == "required") {
      call_.choice = ToolCall::Choice::required;
    } else if (value == "none" && may_be_none) {
      call_.choice = ToolCall::Choice::none;
    } else {
      fields.fail(name, "invalid_value",
                  "'" + fields.full_name(name) + "' must be " + (may_be_none ? "none, " : "") + "auto, required" +
                      (may_be_none ? " or an object that names a tool" : "") + ", not " + shown(value) + ".");
    }
  }

  void object(Fields& fields) {
    const auto type = fields.needed_string("type");
    if (type == "function") {
      call_.choice = ToolCall::Choice::required;
      call_.parallel = false;
      const std::string name = read_named(fields);
      return fields.failed() ? void() : keep({name}, "tool_choice.function.name");
    }
    if (type != "allowed_tools")
      return fields.fail("type", "unsupported_value", "'tool_choice.type' must be function or allowed_tools.");
    fields.required("allowed_tools");
    const JsonObject* allowed = fields.object("allowed_tools");
    if (!allowed) return;
    Fields inner(*allowed, "tool_choice.allowed_tools.");
    if (const Json* value = inner.required("mode")) mode(inner, "mode", *value, false);
    std::vector<std::string> names;
    inner.required("tools");
    if (const JsonArray* tools = inner.array("tools")) {
      for (size_t i = 0; i < tools->size() && !inner.failed(); i++) {
        const std::string path = "tool_choice.allowed_tools.tools[" + std::to_string(i) + "]";
        if (!(*tools)[i].is_object()) return inner.fail("tools", "invalid_type", "'" + path + "' must be an object.");
        Fields one((*tools)[i].get_object(), path + ".");
        if (const auto kind = one.string("type"); kind != "function")
          one.fail("type", "unsupported_value", "'" + path + ".type' can only be function.");
        names.push_back(read_named(one));
        if (const auto error = one.finish()) inner.fail(*error);
      }
    }
    if (const auto error = inner.finish()) return fields.fail(*error);
    keep(names, "tool_choice.allowed_tools.tools");
  }

  // Of the tools, those of these names may be called.
  void keep(const std::vector<std::string>& names, const char* field) {
    for (const std::string& name : names)
      if (std::ranges::find(call_.callable, name, &Tool::name) == call_.callable.end())
        fields_.fail(field, "invalid_value",
                     "'tool_choice' names the tool " + shown(Json(name)) + ", which isn't among 'tools'.");
    std::erase_if(call_.callable, [&](const Tool& tool) { return std::ranges::find(names, tool.name) == names.end(); });
    if (call_.callable.empty() && call_.choice == ToolCall::Choice::free) call_.choice = ToolCall::Choice::none;
  }

  Fields& fields_;
  ToolCall& call_;
};

}  // namespace

ToolCall read_tools(Fields& fields) {
  ToolCall call;
  call.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  if (const JsonArray* tools = fields.array("tools"); tools && !tools->empty()) {
    call.callable = read_list(fields, *tools);
    call.listed = *tools;
    call.choice = ToolCall::Choice::free;
  }
  Choosing(fields, call).run();
  if (call.choice == ToolCall::Choice::none) {
    call.callable.clear();
    call.listed = nullptr;
  }
  return call;
}

}  // namespace unisono::serve
