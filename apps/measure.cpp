// unisono perplexity, bench: how good and how fast a model runs here.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "eval/bench.h"
#include "eval/perplexity.h"
#include "session.h"

namespace unisono::apps {

namespace {

model::KvType kv_type(const ModelFlags& flags) { return flags.kv_type == "f32" ? model::KvType::f32 : model::KvType::f16; }

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
      fmt::print(", second halves: KL mean {:.3e} largest {:.3e}, same top token {:.2f} %; all: {:.3e}, {:.3e}", r.mean_kl, r.largest_kl,
                 100 * r.same_top, r.mean_kl_all, r.largest_kl_all);
    fmt::print("\n");
    std::fflush(stdout);
  };
  eval::PerplexityReport report;
  if (against) {
    auto result = eval::divergence(loaded.model, (*session)->team, kv_type(flags.model), flags.reference, show);
    if (!result) return complain(result.error());
    report = *result;
  } else {
    std::ifstream file(flags.text, std::ios::binary);
    if (!file) return complain({"Can't read '" + flags.text + "'."});
    const std::string text(std::istreambuf_iterator<char>(file), {});
    auto tokens = loaded.tokenizer.encode(text, true, false);
    if (flags.chunks > 0) tokens.resize(std::min(tokens.size(), static_cast<size_t>(flags.chunks) * static_cast<size_t>(flags.context)));
    if (tokens.size() < static_cast<size_t>(flags.context))
      return complain({fmt::format("'{}' has {} tokens, less than one chunk of {}.", flags.text, tokens.size(), flags.context)});
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

struct BenchFlags {
  ModelFlags model{};
  eval::BenchOptions options{};
  bool json = false;
};

void print_results(const BenchFlags& flags, const Session& session, const std::vector<eval::BenchResult>& results) {
  JsonArray rows;
  for (const auto& r : results) {
    const bool decode = r.test == "decode";
    const double steps = r.median() / r.sequences;  // of a decode, a second
    if (flags.json) {
      JsonObject row{{"test", r.test},           {"tok_s", r.median()}, {"tok_s_min", r.slowest()}, {"tok_s_max", r.fastest()},
                     {"tokens", r.tokens},       {"depth", r.depth},    {"sequences", r.sequences}, {"repetitions", static_cast<int64_t>(r.seconds.size())}};
      if (decode) row["gb_s"] = r.bytes_per_step * steps / 1e9;
      rows.push_back(std::move(row));
    } else {
      fmt::print("{:8} {:5} tokens, depth {:5}, {:2} sequences: {:9.1f} tok/s (min {:.1f}, max {:.1f})", r.test, r.tokens, r.depth, r.sequences,
                 r.median(), r.slowest(), r.fastest());
      if (decode) fmt::print(", {:.1f} GB/s", r.bytes_per_step * steps / 1e9);
      fmt::print("\n");
    }
  }
  if (!flags.json) return;
  const JsonObject machine{{"threads", session.team.size()},
                           {"isa", session.loaded->model.ops().name},
                           {"activations", flags.model.activations},
                           {"kv_type", flags.model.kv_type},
                           {"weight_bytes", session.loaded->model.weight_bytes()}};
  fmt::print("{}\n", to_text(JsonObject{{"machine", machine}, {"results", std::move(rows)}}));
}

int bench(const BenchFlags& flags) {
  auto session = open_session(flags.model, false);
  if (!session) return complain(session.error());
  auto options = flags.options;
  options.kv = kv_type(flags.model);
  const bool terminal = isatty(2) != 0;
  auto results = eval::bench((*session)->loaded->model, (*session)->team, options, [&](const std::string& what) {
    if (terminal) fmt::print(stderr, "\r\x1b[K{}", what);
  });
  if (terminal) fmt::print(stderr, "\r\x1b[K");
  if (!results) return complain(results.error());
  print_results(flags, **session, *results);
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how likely a model finds a text, or how far it is from a reference");
  add_model_flags(*command, flags->model);
  command->add_option("TEXT", flags->text, "A text file");
  command->add_option("--kl", flags->reference, "Instead of a text: a reference's logits, as tests/golden/kl.py writes them");
  command->add_option("--context", flags->context, "Tokens of a chunk")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  command->add_option("--chunks", flags->chunks, "Chunks of the text; 0: all")->check(CLI::Range(0, 1 << 30))->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &exit_code] { exit_code = perplexity(*flags); });
}

void add_bench(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed");
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);  // `bench grammar` takes none
  add_bench_grammar(*command, exit_code);
  command->add_option("--prompt", flags->options.prompt, "Tokens of a prefill; 0: none")->check(CLI::Range(0, 1 << 24))->capture_default_str();
  command->add_option("--generate", flags->options.generate, "Tokens of a decode; 0: none")->check(CLI::Range(0, 1 << 24))->capture_default_str();
  command->add_option("--depth", flags->options.depth, "Positions before them")->check(CLI::Range(0, 1 << 24))->capture_default_str();
  command->add_option("--sequences", flags->options.sequences, "Sequences decoded together")->check(CLI::Range(1, 1024))->capture_default_str();
  command->add_option("--reps", flags->options.repetitions, "Repetitions, after one warm-up")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([command, flags, &exit_code] {
    if (command->got_subcommand("grammar")) return;
    exit_code = flags->model.model.empty() ? complain({"Give a MODEL to measure; --help says what else there is."}) : bench(*flags);
  });
}

}  // namespace unisono::apps
