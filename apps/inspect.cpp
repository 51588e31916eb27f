// unisono info, tokenize, template: what a model file holds, without running it.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "base/json.h"
#include "commands.h"
#include "engine/load.h"
#include "engine/window_blocks.h"
#include "input.h"
#include "model/kv_store.h"
#include "session.h"

namespace unisono::apps {

namespace {

struct InfoFlags {
  std::string model{};
  bool json = false;
};

int info_command(const InfoFlags& flags) {
  auto file = checkpoint::Checkpoint::open(flags.model);
  if (!file) return complain(file.error());
  auto d = engine::describe(*file, flags.model);
  if (!d) return complain(d.error());
  const model::Hparams& h = d->hparams;
  double file_bytes = 0;
  for (const auto& [type, bytes] : d->types) file_bytes += static_cast<double>(bytes);
  const int budget = engine::EngineOptions().token_budget;
  auto cost = [&](model::KvType type) { return CacheCost(h, type, h.context_length, budget); };
  auto per_token = [&](model::KvType type) { return cost(type).block / model::kBlockTokens; };
  // Of a sequence that has left its window.
  auto per_window = [&](model::KvType type) { return cost(type).window_block * engine::WindowBlocks::most_held(h.window); };
  int windowed = 0;
  for (auto w : h.windowed) windowed += w;
  if (flags.json) {
    JsonObject types;
    for (const auto& [type, bytes] : d->types) types[info(type).name] = bytes;
    fmt::print("{}\n", to_text(JsonObject{{"name", d->name},
                                          {"family", d->arch->gguf_name},
                                          {"parameters", d->parameters},
                                          {"active_parameters", d->active_parameters},
                                          {"layers", h.n_layers},
                                          {"d_model", h.d_model},
                                          {"heads", h.n_heads},
                                          {"kv_heads", h.n_kv_heads},
                                          {"head_dim", h.head_dim},
                                          {"d_ff", h.d_ff},
                                          {"experts", h.n_experts},
                                          {"experts_used", h.n_experts_used},
                                          {"vocabulary", h.vocab_size},
                                          {"context", h.context_length},
                                          {"window", h.window},
                                          {"windowed_layers", windowed},
                                          {"weight_bytes", types},
                                          {"kv_bytes_per_token_f16", per_token(model::KvType::f16)},
                                          {"kv_bytes_per_token_f32", per_token(model::KvType::f32)},
                                          {"kv_bytes_per_window_f16", per_window(model::KvType::f16)},
                                          {"kv_bytes_per_window_f32", per_window(model::KvType::f32)},
                                          {"chat_template", !d->chat_template.empty()}}));
    return 0;
  }
  fmt::print("{}\n", d->name);
  fmt::print("  family      {}, {:.0f} M parameters", d->arch->gguf_name, static_cast<double>(d->parameters) / 1e6);
  if (h.n_experts > 0) fmt::print(", {:.0f} M of them for each token", static_cast<double>(d->active_parameters) / 1e6);
  fmt::print("\n  shape       {} layers, {} wide, {} heads of {} ({} for keys and values), feed-forward ", h.n_layers,
             h.d_model, h.n_heads, h.head_dim, h.n_kv_heads);
  if (h.n_experts > 0) fmt::print("{} of {} experts of ", h.n_experts_used, h.n_experts);
  fmt::print("{}\n", h.d_ff);
  fmt::print("  vocabulary  {} tokens, chat template: {}\n", h.vocab_size, d->chat_template.empty() ? "none" : "yes");
  fmt::print("  context     {} tokens", h.context_length);
  if (windowed > 0) fmt::print(", {} of {} layers see {}", windowed, h.n_layers, h.window);
  fmt::print("\n  weights     {}:", size_text(file_bytes));
  for (const auto& [type, bytes] : d->types) fmt::print(" {} {}", info(type).name, size_text(static_cast<double>(bytes)));
  fmt::print("\n  cache       {} a token in f16, {} in f32", size_text(per_token(model::KvType::f16)),
             size_text(per_token(model::KvType::f32)));
  if (const double window = per_window(model::KvType::f16); window > 0)
    fmt::print("; up to {} a sequence in f16 for its windows", size_text(window));
  fmt::print("; {} for a full context in f16\n",
             size_text(per_token(model::KvType::f16) * h.context_length + per_window(model::KvType::f16)));
  return 0;
}

struct TokenizeFlags {
  std::string model{}, file{};
  std::optional<std::string> text{};
  bool ids = false, special = false, bare = false;
};

int tokenize(const TokenizeFlags& flags) {
  if (flags.text && !flags.file.empty()) return complain({"Give a TEXT or --file, not both."});
  auto file = checkpoint::Checkpoint::open(flags.model);
  if (!file) return complain(file.error());
  auto tokenizer = engine::load_tokenizer(*file);
  if (!tokenizer) return complain(tokenizer.error());
  auto text = flags.text ? *flags.text : read_text(flags.file.empty() ? "-" : flags.file);
  if (!text) return complain(text.error());
  const auto tokens = tokenizer->encode(*text, !flags.bare, flags.special);
  if (flags.ids) {
    JsonArray ids;
    for (auto id : tokens) ids.push_back(id);
    fmt::print("{}\n", to_text(ids));
    return 0;
  }
  for (auto id : tokens) {
    fmt::print("{:>7}  ", id);
    for (unsigned char c : tokenizer->bytes(id, true)) {
      if (c == '\n') {
        fmt::print("\\n");
      } else if (c < 0x20 || c == 0x7f) {
        fmt::print("\\x{:02x}", c);
      } else {
        std::fputc(c, stdout);
      }
    }
    fmt::print("\n");
  }
  remark("{} tokens for {} bytes\n", tokens.size(), text->size());
  return 0;
}

struct TemplateFlags {
  std::string model{}, messages{};
  bool no_generation_prompt = false;
};

int show_template(const TemplateFlags& flags) {
  auto file = checkpoint::Checkpoint::open(flags.model);
  if (!file) return complain(file.error());
  auto d = engine::describe(*file, flags.model);
  if (!d) return complain(d.error());
  if (d->chat_template.empty()) return complain({"'" + d->name + "' has no chat template."});
  if (flags.messages.empty()) {
    fmt::print("{}\n", d->chat_template);
    return 0;
  }
  auto tokenizer = engine::load_tokenizer(*file);
  if (!tokenizer) return complain(tokenizer.error());
  auto messages = read_json(flags.messages);
  if (!messages) return complain(messages.error());
  auto token_text = [&](std::optional<text::TokenId> id) { return id ? tokenizer->bytes(*id, true) : std::string(); };
  auto parsed = text::ChatTemplate::parse(d->chat_template, token_text(tokenizer->bos()), token_text(tokenizer->eos()));
  if (!parsed) return complain(parsed.error());
  text::ChatInput input;
  input.messages = *messages;
  input.add_generation_prompt = !flags.no_generation_prompt;
  auto rendered = parsed->render(input, std::time(nullptr));
  if (!rendered) return complain(rendered.error());
  fmt::print("{}", rendered->text);
  return 0;
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* command = app.add_subcommand("info", "Say what a model file is and how much memory it takes");
  command->add_option("MODEL", flags->model, "Model file (GGUF)")->required();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &exit_code] { exit_code = info_command(*flags); });
}

void add_tokenize(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand("tokenize", "Show the tokens of a text");
  command->add_option("MODEL", flags->model, "Model file (GGUF); its vocabulary is enough")->required();
  command->add_option("TEXT", flags->text, "The text; without it: --file or standard input");
  command->add_option("--file", flags->file, "Read the text from this file; -: standard input")->check(kNotEmpty);
  command->add_flag("--ids", flags->ids, "Print the ids only, as a JSON array");
  command->add_flag("--special", flags->special, "Text may match control tokens");
  command->add_flag("--bare", flags->bare, "Add no begin and end tokens");
  command->callback([flags, &exit_code] { exit_code = tokenize(*flags); });
}

void add_template(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TemplateFlags>();
  CLI::App* command = app.add_subcommand("template", "Print a model's chat template, or what it makes of messages");
  command->add_option("MODEL", flags->model, "Model file (GGUF)")->required();
  command->add_option("--messages", flags->messages, "Render this file, a JSON array of messages; -: standard input")
      ->check(kNotEmpty);
  command->add_flag("--no-generation-prompt", flags->no_generation_prompt, "Don't open the assistant's turn at the end");
  command->callback([flags, &exit_code] { exit_code = show_template(*flags); });
}

}  // namespace unisono::apps
