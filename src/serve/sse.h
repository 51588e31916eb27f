// Server-sent events, as OpenAI streams them.
#pragma once

#include <string>

#include "base/json.h"

namespace unisono::serve {

inline constexpr const char* kSseType = "text/event-stream; charset=utf-8";

// JSON text has no line breaks of its own, so one data line carries it.
inline std::string sse_event(const Json& value) { return "data: " + to_text(value) + "\n\n"; }
inline std::string sse_event_text(const std::string& json) { return "data: " + json + "\n\n"; }
// An event with a name, as OpenAI's responses and Anthropic's messages have them: the name is the value's "type".
inline std::string sse_named_event(const JsonObject& value) {
  return "event: " + std::string(value.at("type").as_string()) + "\n" + sse_event(value);
}
inline std::string sse_done() { return "data: [DONE]\n\n"; }

}  // namespace unisono::serve
