// The fields that all generating endpoints have in common: how tokens are chosen, when to stop, what to report.
#pragma once

#include <optional>
#include <string>

#include "engine/request.h"
#include "serve/constraints.h"
#include "serve/fields.h"

namespace unisono::serve {

// What of a model the checking of a request needs.
struct ModelFacts {
  std::string name{};  // as clients call it
  int vocab_size = 0;
  int max_context = 0;  // positions
};

// What becomes of a prompt that is too long.
struct Truncation {
  bool automatic = false;            // the oldest turns of a chat go, or a text's first tokens; else it is refused
  std::optional<int> keep_tokens{};  // only the last of them are taken, whether more would fit or not; 0: those that fit
};

// What a client asks for besides its prompt.
struct GenerationCall {
  engine::Request request{};        // without prompt, choice index and on_delta
  std::optional<int> max_tokens{};  // absent: the endpoint's default; 0 only for completions
  std::optional<ConstraintCall> constraint{};
  grammar::JsonSchemaOptions schema_options{};  // for its schemas, and for those of tools
  int n = 1;
  Truncation truncation{};
  std::optional<int> prompt_logprobs{};  // tell the prompt's, and of this many likeliest tokens at each place
  bool token_ids = false;                // tell the ids of the prompt's and the answer's tokens
  bool timings = false;                  // tell where the time went
  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool continuous_usage = false;  // the usage so far in every chunk
};

inline constexpr int kMaxChoices = 128;  // prompts times n of one request
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxStopStrings = 16;
inline constexpr int kMaxTimeoutSeconds = 7 * 24 * 3600;
inline constexpr size_t kMaxStopBytes = 1024;  // of one stop string

// The fields that every API has, or takes as ours: the model, how tokens are chosen, when the answer ends, whose turn it
// is, and what is cut from a prompt. `stop` is the API's name of the stop strings. Mistakes are left in `fields`. An absent
// seed is drawn at random.
GenerationCall read_common(Fields& fields, const ModelFacts& model, std::string_view stop = "stop");

// These, and what OpenAI's chat and completions share besides: streaming, constraints, n, and what is told. Neither the
// fields of log-probabilities nor those of lengths, whose meaning differs between endpoints.
GenerationCall read_generation(Fields& fields, const ModelFacts& model);

// stream and stream_options. tells_usage: the API has options for telling the usage.
void read_stream(Fields& fields, GenerationCall& call, bool tells_usage);

// That min_tokens isn't above max_tokens, which this API calls `limit`.
void check_min_tokens(Fields& fields, const GenerationCall& call, std::string_view limit);

// "model": absent, or the served model's name; else a mistake with status 404.
void check_model(Fields& fields, const ModelFacts& model);

}  // namespace unisono::serve
