#include "serve/openai_completions.h"

namespace unisono::serve {

namespace {

constexpr int kDefaultMaxTokens = 16;
constexpr std::string_view kNoEffect[] = {"user"};

std::vector<Prompt> read_prompts(Fields& fields, const ModelFacts& model) {
  std::vector<Prompt> prompts;
  const Json* prompt = fields.required("prompt");
  if (!prompt) return prompts;
  if (prompt->is_string()) return {std::string(prompt->get_string())};
  const JsonArray* array = prompt->if_array();
  if (!array || array->empty()) {
    fields.fail("prompt", "invalid_type",
                "'prompt' must be a string, an array of token ids, or an array of those, not " +
                    (array ? "an empty array" : shown(*prompt)) + ".");
    return prompts;
  }
  if (array->front().is_number()) return {read_token_ids(fields, "prompt", *array, model)};
  if (array->size() > kMaxChoices) {
    fields.fail("prompt", "invalid_value",
                "'prompt' has " + std::to_string(array->size()) + " prompts; a request may have " +
                    std::to_string(kMaxChoices) + ".");
    return prompts;
  }
  for (const Json& one : *array) {
    if (one.is_string() && array->front().is_string()) {
      prompts.emplace_back(std::string(one.get_string()));
    } else if (one.is_array() && array->front().is_array()) {
      prompts.emplace_back(read_token_ids(fields, "prompt", one.get_array(), model));
    } else {
      fields.fail("prompt", "invalid_type",
                  "The prompts in 'prompt' must all be strings or all be arrays of token ids; one is " + shown(one) + ".");
      break;
    }
  }
  return prompts;
}

void read_logprobs(Fields& fields, CompletionCall& call) {
  const auto top = fields.integer("logprobs", 0, kMaxTopLogprobs);
  if (!top) return;
  engine::Request& request = call.generation.request;
  request.logprobs = true;
  request.top_logprobs = static_cast<int>(*top);
  request.prompt_logprobs = call.echo;
}

void read_best_of(Fields& fields, CompletionCall& call) {
  const int n = call.generation.n;
  call.best_of = static_cast<int>(fields.integer("best_of", 0, kMaxChoices).value_or(n));
  if (call.best_of < n)
    fields.fail(
        "best_of", "invalid_value",
        "'best_of' must be at least 'n', which is " + std::to_string(n) + ", not " + std::to_string(call.best_of) + ".");
  if (call.best_of > n && call.generation.stream)
    fields.fail("best_of", "invalid_value",
                "'best_of' above 'n' can't be streamed: which answers are the best is known at their ends.");
  const size_t answers = call.prompts.size() * static_cast<size_t>(call.best_of);
  if (answers > kMaxChoices)
    fields.fail(call.best_of > n ? "best_of" : "n", "invalid_value",
                std::string("Prompts times ") + (call.best_of > n ? "'best_of'" : "'n'") + " are " +
                    std::to_string(answers) + " answers; a request may have " + std::to_string(kMaxChoices) + ".");
}

}  // namespace

std::vector<engine::TokenId> read_token_ids(Fields& fields, std::string_view name, const JsonArray& ids,
                                            const ModelFacts& model) {
  std::vector<engine::TokenId> out;
  out.reserve(ids.size());
  for (const Json& one : ids) {
    const auto id = whole_number(one);
    if (!id || *id < 0 || *id >= model.vocab_size) {
      fields.fail(name, one.is_number() ? "invalid_value" : "invalid_type",
                  "'" + fields.full_name(name) + "' must have token ids from 0 to " + std::to_string(model.vocab_size - 1) +
                      ", not " + shown(one) + ".");
      break;
    }
    out.push_back(static_cast<engine::TokenId>(*id));
  }
  return out;
}

Parsed<CompletionCall> parse_completion(const Json& body, const ModelFacts& model) {
  if (!body.is_object())
    return ApiError{.message = "The body must be a JSON object, not " + shown(body) + ".", .code = "invalid_type"};
  Fields fields(body.get_object());
  CompletionCall call;
  call.generation = read_generation(fields, model);
  call.echo = fields.boolean("echo").value_or(false);
  call.generation.max_tokens = static_cast<int>(fields.integer("max_tokens", 0, INT32_MAX).value_or(kDefaultMaxTokens));
  check_min_tokens(fields, call.generation, "max_tokens");
  read_logprobs(fields, call);
  call.prompts = read_prompts(fields, model);
  read_best_of(fields, call);
  fields.refuse("suffix", "the model can't fill in the middle");
  fields.ignore(kNoEffect);
  if (const auto error = fields.finish()) return *error;
  return call;
}

}  // namespace unisono::serve
