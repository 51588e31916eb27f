// Chat templates are foreign code: whatever the source, parsing and rendering end, within their limits, in a text or a
// sentence. The marks of a rendered text are in order and inside of it.
#include <cstdint>
#include <string>

#include "base/json.h"
#include "text/chat_template.h"

namespace {

const unisono::text::ChatInput& conversation() {
  static const unisono::text::ChatInput input = [] {
    unisono::text::ChatInput made;
    made.messages = *unisono::parse_json(R"([
        {"role": "system", "content": "S <b> \u00fc"}, {"role": "user", "content": ["not", "text"], "x": {"y": [1, 2.5, null]}},
        {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": [1]}"}}]},
        {"role": "tool", "content": " a, b\n c "}])");
    made.messages.as_array()[1].as_object()["content"] = "one\ntwo";
    made.tools = *unisono::parse_json(R"([{"type": "function", "function": {"name": "f", "parameters": {"a": true}}}])");
    made.variables = {{"n", 3}, {"x", 0.5}, {"s", "Wort \xC3\xBC"}, {"l", {3, 1, 2}}, {"d", {{"k", 1}, {"items", 2}}}};
    return made;
  }();
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace unisono::text;
  auto parsed = ChatTemplate::parse(std::string(reinterpret_cast<const char*>(data), size), "<s>", "</s>");
  if (!parsed) return 0;
  auto rendered = parsed->render(conversation(), 1'700'000'000);
  if (!rendered) return 0;
  size_t at = 0;
  for (const MarkedText::Span& span : rendered->from_user) {
    if (span.begin < at || span.end <= span.begin || span.end > rendered->text.size()) __builtin_trap();
    at = span.end;
  }
  return 0;
}
