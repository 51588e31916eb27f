// The engine's two nouns: a Request goes in, Deltas come out. Plain data; templating and tokenising are done before.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "decode/params.h"
#include "grammar/matcher.h"

namespace unisono::engine {

using TokenId = int32_t;

enum class FinishReason : uint8_t {
  stop_token,  // an end token of the model or of the request
  stop_string,
  length,     // max_tokens
  context,    // the model's context or the block pool is full
  cancelled,  // the client asked or left
  deadline,   // Request::deadline has passed
  complete,   // the constraint: the answer is whole, and nothing could follow
  error,      // Delta::error says why
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;  // of the model's own distribution, before any decoding rule
};

struct TokenResult {
  TokenId id = 0;
  float logprob = 0;
  int rank = 0;                     // of prompt tokens; 1: no token is likelier
  std::vector<TokenLogprob> top{};  // Request::top_logprobs of them, best first
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  // of the prompt's, those whose keys and values were in the cache
};

// Wall time in seconds.
struct Timings {
  double queue_s = 0;    // from submit to the first step it took part in
  double prefill_s = 0;  // from there to the first token
  double decode_s = 0;   // from the first token to the last
};

struct Delta {
  std::string text{};                 // valid UTF-8; what stop strings could still take back is held back
  std::vector<TokenResult> tokens{};  // the tokens since the last delta, when the request asks for logprobs or ids
  std::vector<TokenResult> prompt{};  // first delta only, when prompt_logprobs is asked: for prompt tokens 1..n-1
  std::optional<FinishReason> finish{};
  std::string stop_detail{};            // the stop string, or the end token's text
  std::optional<TokenId> stop_token{};  // with FinishReason::stop_token: which
  Error error{};      // with FinishReason::error; its subject is the field that is at fault, empty when the request isn't
  Usage usage{};      // so far
  Timings timings{};  // so far
  std::chrono::steady_clock::time_point made{};
};

inline constexpr size_t kMaxSaltBytes = 256;
inline constexpr int kNoLimit = std::numeric_limits<int>::max();  // of an answer's tokens: to the end of the context

// How much of an answer may be thoughts. They stand between two texts; when they have taken so many tokens, the end's text
// comes next, whatever the model would choose; a character that they have begun may first become whole.
struct ThoughtBudget {
  std::string begin{}, end{};
  int max_tokens = 0;  // of all thoughts, their begin not counted
  bool open = false;   // the prompt ends within a thought; else the answer may begin with one
  bool again = false;  // thoughts may begin anywhere in the answer
};

struct Request {
  std::vector<TokenId> prompt{};  // at least one token
  decode::SamplingParams sampling{};
  // What the answer must belong to, at its beginning; end tokens are allowed only where it is complete.
  std::optional<grammar::Matcher> constraint{};
  std::optional<ThoughtBudget> thoughts{};
  int max_tokens = 16;                 // at least 1, or kNoLimit
  std::vector<std::string> stop{};     // non-empty strings; the text ends before the first match
  std::vector<TokenId> stop_tokens{};  // besides the model's own end tokens
  bool ignore_eos = false;
  int min_tokens = 0;     // end tokens can't be chosen before
  bool logprobs = false;  // fill Delta::tokens
  int top_logprobs = 0;
  bool prompt_logprobs = false;
  bool show_special = false;  // control tokens appear in the text
  std::string cache_salt{};   // prefixes are shared only with requests of the same salt; at most kMaxSaltBytes
  // Who goes first, when not all can; nothing of this changes an answer's tokens.
  int priority = 0;     // lower is sooner
  std::string owner{};  // whose request: those of one priority take turns by owner
  std::optional<std::chrono::steady_clock::time_point> deadline{};  // then the answer ends where it is, waiting or not
  // Called on the engine thread for every delta, the last one with finish set; must be quick and must not throw or call
  // the engine.
  std::function<void(Delta&&)> on_delta{};
};

}  // namespace unisono::engine
