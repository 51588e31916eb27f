// What the answers of OpenAI's chat and completions have in common: the head of every object, the stream's chunks and its
// end, the usage, and how a choice ends. Knows nothing of what a choice says.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "serve/answer.h"
#include "serve/context.h"

namespace unisono::serve {

class AnswerFrame {
 public:
  struct Names {
    const char* id_prefix;  // "chatcmpl-"
    const char* whole;      // what "object" is
    const char* chunk;
  };
  AnswerFrame(const ServeContext& context, const AnswerOptions& options, const Names& names);

  // An event with one choice, and with the usage so far when that is asked for.
  std::string chunk(JsonObject choice, const engine::Usage& so_far, JsonObject further = {}) const;
  // The events after the last chunk.
  std::string closing(const engine::Usage& usage) const;
  // further: fields besides OpenAI's.
  std::string whole(JsonArray choices, const engine::Usage& usage, JsonObject further = {}) const;

 private:
  JsonObject head(const char* object) const;

  std::string id_, model_, fingerprint_;
  int64_t created_ = 0;
  Names names_;
  bool include_usage_, continuous_usage_;
};

// What is said of a choice at its end: finish_reason, stop_reason, and with options.timings the timings.
JsonObject ending(const engine::Delta& delta, const AnswerOptions& options);

JsonObject usage_json(const engine::Usage& usage);
JsonArray ids_json(const std::vector<engine::TokenId>& ids);

// Appends the fields of `more`, those that stand in `to` already replaced.
void append(JsonObject& to, JsonObject more);

}  // namespace unisono::serve
