// unisono perplexity: how good a model is, or how far from a reference.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "eval/perplexity.h"
#include "input.h"
#include "session.h"

namespace unisono::apps {

namespace {

struct PerplexityFlags {
  ModelFlags model{};
  std::string text{}, reference{};
  int chunks = 0, context = 512;
  bool json = false;
};

int perplexity(const PerplexityFlags& flags) {
  if (flags.text.empty() == flags.reference.empty()) return complain({"Give a TEXT or --kl REFERENCE, one of them."});
  auto session = open_session(flags.model, false);
  if (!session) return complain(session.error());
  auto& loaded = *(*session)->loaded;
  const bool against = !flags.reference.empty();
  auto show = [&](const eval::PerplexityReport& r) {
    if (flags.json) return;
    fmt::print("{:4} chunks: perplexity {:.4f}", r.chunks, r.perplexity);
    if (against)
      fmt::print(", second halves: KL mean {:.3e} largest {:.3e}, same top token {:.2f} %; all: {:.3e}, {:.3e}", r.mean_kl,
                 r.largest_kl, 100 * r.same_top, r.mean_kl_all, r.largest_kl_all);
    fmt::print("\n");
    std::fflush(stdout);
  };
  eval::PerplexityReport report;
  if (against) {
    auto result = eval::divergence(loaded.model, (*session)->team, kv_type(flags.model), flags.reference, show);
    if (!result) return complain(result.error());
    report = *result;
  } else {
    auto text = read_text(flags.text);
    if (!text) return complain(text.error());
    auto tokens = loaded.tokenizer.encode(*text, true, false);
    if (flags.chunks > 0)
      tokens.resize(std::min(tokens.size(), static_cast<size_t>(flags.chunks) * static_cast<size_t>(flags.context)));
    if (tokens.size() < static_cast<size_t>(flags.context))
      return complain(
          {fmt::format("'{}' has {} tokens, less than one chunk of {}.", flags.text, tokens.size(), flags.context)});
    report = eval::perplexity(loaded.model, (*session)->team, kv_type(flags.model), tokens, flags.context, show);
  }
  if (flags.json) {
    JsonObject out{{"chunks", report.chunks}, {"context", report.context}, {"perplexity", report.perplexity}};
    if (against) {
      out["mean_kl"] = report.mean_kl;
      out["largest_kl"] = report.largest_kl;
      out["mean_kl_all"] = report.mean_kl_all;
      out["largest_kl_all"] = report.largest_kl_all;
      out["same_top"] = report.same_top;
    }
    fmt::print("{}\n", to_text(out));
  }
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* command =
      app.add_subcommand("perplexity", "Measure how likely a model finds a text, or how far it is from a reference");
  add_model_flags(*command, flags->model);
  command->add_option("TEXT", flags->text, "A text file");
  auto* reference = command
                        ->add_option("--kl", flags->reference,
                                     "Instead of a text: a reference's logits, as tests/golden/kl.py writes them")
                        ->check(kNotEmpty);
  command->add_option("--context", flags->context, "Tokens of a chunk of the text")
      ->check(CLI::Range(2, 1 << 20))
      ->excludes(reference)  // which has chunks of its own
      ->capture_default_str();
  command->add_option("--chunks", flags->chunks, "Chunks of the text; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->excludes(reference)
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &exit_code] { exit_code = perplexity(*flags); });
}

}  // namespace unisono::apps
