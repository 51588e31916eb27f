// The body of POST /v1/completions, checked and taken apart.
#pragma once

#include <variant>
#include <vector>

#include "serve/openai_params.h"

namespace unisono::serve {

// A prompt as the client gave it: text, or tokens.
using Prompt = std::variant<std::string, std::vector<engine::TokenId>>;

struct CompletionCall {
  GenerationCall generation{};
  std::vector<Prompt> prompts{};
  int best_of = 1;    // answers made to each prompt, of which the likeliest n are told
  bool echo = false;  // the answer begins with the prompt
};

Parsed<CompletionCall> parse_completion(const Json& body, const ModelFacts& model);

// Token ids; a mistake names what isn't one of the vocabulary's.
std::vector<engine::TokenId> read_token_ids(Fields& fields, std::string_view name, const JsonArray& ids,
                                            const ModelFacts& model);

}  // namespace unisono::serve
