// The serving loop: continuous batching over one model. One thread owns everything mutable; submit() and cancel() may be
// called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/step_times.h"
#include "model/kv_store.h"

namespace unisono::model {
class Model;
}
namespace unisono::text {
class Tokenizer;
}
namespace unisono {
class ThreadTeam;
}

namespace unisono::engine {

struct EngineOptions {
  int max_context = 0;      // positions of a sequence; at most the model's context length; 0: that
  int n_blocks = 0;         // of the key/value store, 16 positions each; 0: for one sequence of max_context
  int n_window_blocks = 0;  // of layers with a window, where they have their own; 0: what goes well with n_blocks
  int token_budget = 512;   // tokens of one step
  int max_running = 64;     // sequences of one step; at most token_budget
  int max_waiting = 1024;   // queue length; full: submit() fails
  model::KvType kv_type = model::KvType::bf16;  // of keys and values
  bool prefix_cache = true;                    // prompts that begin alike share blocks; changes speed, never an answer
  std::vector<TokenId> end_tokens{};           // the model's own
};

using RequestId = uint64_t;

struct EngineState {
  int running = 0, waiting = 0;
  int max_waiting = 0;  // more are refused
  int blocks_free = 0, blocks_total = 0;
  int window_blocks_free = 0, window_blocks_total = 0;  // 0 of 0: no layers have blocks of their own
  int block_tokens = 0;                                 // positions of a block
  uint64_t steps = 0;
  uint64_t rows = 0;  // tokens computed in them
  StepCounts step_times{};
  double busy_s = 0;            // since the loop last came round; 0: it waits for something to do
  uint64_t preemptions = 0;     // sequences that gave way and were computed again
  uint64_t prefix_queries = 0;  // prompt tokens that were looked for in the prefix cache
  uint64_t prefix_hits = 0;     // of them, those found there
};

class Engine {
 public:
  // The model, tokenizer and team must outlive the engine; nobody else may use model and team meanwhile.
  Engine(model::Model& model, const text::Tokenizer& tokenizer, ThreadTeam& team, const EngineOptions& options);
  ~Engine();  // cancels what runs and waits for the thread

  // The request is in the queue, and its deltas come. One whose deadline passes ends with FinishReason::deadline within one
  // step, waiting, in its prompt or in its answer.
  // Refused with a sentence and subject "prompt", "max_tokens" ...: an empty prompt, ids outside the vocabulary, a prompt
  // that doesn't fit the context (both numbers), a full queue (subject "queue").
  Result<RequestId> submit(Request request);
  // The request ends with FinishReason::cancelled within one step. Unknown or ended ids are ignored.
  void cancel(RequestId id);

  EngineState state() const;
  int max_context() const;
  // For tests: recounts blocks and sequences when idle; check()s that all agree.
  void audit() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono::engine
