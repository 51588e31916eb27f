// What the subcommands that run a model share: their flags, and a loaded model with its engine.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/thread_team.h"
#include "engine/engine.h"
#include "engine/load.h"
#include "model/kv_store.h"

namespace unisono::apps {

struct ModelFlags {
  std::string model{};
  int threads = 0;  // 0: one for each CPU this process may use
  std::string numa = "distribute";
  std::string isa = "auto";
  std::string activations = "int8";
  std::string kv_type = "auto";
  int max_context = 0;      // 0: the model's, or what the key/value memory holds
  std::string kv_memory{};  // "2G"; empty: a quarter of the free memory, at most 16 full contexts
};

// Adds MODEL and the flags above but the last two.
void add_model_flags(CLI::App& command, ModelFlags& flags);
// Adds these, for commands that keep sequences in a cache of a size of their own.
void add_context_flags(CLI::App& command, ModelFlags& flags);

// What the flags say, for who loads without a session.
Placement placement(const ModelFlags& flags);  // a note on stderr where the system refuses it
model::KvType kv_type(const ModelFlags& flags);
std::string kv_type_name(const ModelFlags& flags);  // never "auto"

// What the key/value cache of a model takes, in bytes, when sequences are up to max_context long and steps compute up to
// token_budget tokens.
struct CacheCost {
  CacheCost(const model::Hparams& hparams, model::KvType type, int max_context, int token_budget);
  // With so many blocks of 16 positions, those of windowed layers with it.
  double of(int n_blocks) const { return n_blocks * block + window_blocks(n_blocks) * window_block; }
  int window_blocks(int n_blocks) const;
  // The most blocks that fit into so many bytes; 0: none.
  int blocks_in(double bytes) const;

  double block = 0;         // 16 positions in all layers, or all without blocks of their own
  double window_block = 0;  // in the layers with blocks of their own; 0: there are none
  int window = 0, max_context = 0, token_budget = 0;
};
Result<engine::LoadOptions> load_options(const ModelFlags& flags);  // shows progress on stderr when it is a terminal
double free_memory();  // bytes that can be had without pressing on others, by the kernel's estimate

// A model with all that it takes to run it. The engine, where there is one, is stopped first.
struct Session {
  explicit Session(const Placement& placement) : team(placement) {}
  ThreadTeam team;
  std::unique_ptr<engine::Loaded> loaded{};
  engine::EngineOptions engine_options{};
  std::unique_ptr<engine::Engine> engine{};
};

// Loads with a progress line on stderr (when it is a terminal). with_engine: starts the engine too. options: the engine's
// in what neither the flags nor the model say.
Result<std::unique_ptr<Session>> open_session(const ModelFlags& flags, bool with_engine,
                                              engine::EngineOptions options = {});

// What stands beside the answer, on stderr. That nobody can hear it is no failure.
template <class... Args>
void remark(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

// "unisono: <sentence>" on stderr; returns the exit code for bad input, 2.
int complain(const Error& error);

// "1.5 GiB"
std::string size_text(double bytes);

}  // namespace unisono::apps
