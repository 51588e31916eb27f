// Where the leaf rooms meet: a model file becomes a model, a tokenizer and a chat template. The only code that knows both
// GGUF's keys and what they mean.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "model/arch.h"
#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace unisono::engine {

// What a file says about its model, without its weights packed.
struct Description {
  const model::Arch* arch = nullptr;
  model::Hparams hparams{};
  std::string name{};           // general.name, or the file's name
  std::string chat_template{};  // its source; empty: none
  std::vector<text::TokenId> end_tokens{};
  uint64_t parameters = 0;
  uint64_t active_parameters = 0;  // that a token goes through: all but those of experts it doesn't go to
  std::vector<std::pair<DType, uint64_t>> types{};  // bytes of the file's tensors by type, largest first
};

// The family and its numbers, each checked; one sentence naming the key otherwise.
Result<model::Hparams> read_hparams(const checkpoint::Checkpoint& file, const model::Arch& arch);
Result<Description> describe(const checkpoint::Checkpoint& file, const std::string& path);
Result<text::Tokenizer> load_tokenizer(const checkpoint::Checkpoint& file);

struct LoadOptions {
  model::ModelOptions model{};
  std::function<void(size_t done, size_t total)> progress{};
};

// A model that token ids go into; its file may lack a tokenizer. Nothing of the file is read any more.
struct LoadedModel {
  Description description;
  model::Model model;
};
// Everything a request needs. Made once, shared by all; only the engine may use `model`.
struct Loaded : LoadedModel {
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
};

Result<LoadedModel> load_model(const std::string& path, const LoadOptions& options, ThreadTeam& team);
Result<std::unique_ptr<Loaded>> load(const std::string& path, const LoadOptions& options, ThreadTeam& team);

}  // namespace unisono::engine
