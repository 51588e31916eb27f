// unisono bench: how fast a model runs here, and how near to the machine's limits.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "eval/bench.h"
#include "session.h"

namespace unisono::apps {

namespace {

struct BenchFlags {
  ModelFlags model{};
  eval::BenchOptions options{};
  bool json = false, csv = false;
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

const char* arithmetic_name(model::Activations a) {
  return a == model::Activations::int8 ? "int8" : a == model::Activations::bf16 ? "bf16" : "f32";
}

// One result as named numbers, for JSON and CSV alike.
JsonObject row_of(const eval::BenchResult& r, model::Activations arithmetic) {
  const bool decode = r.test == "decode";
  JsonObject row{{"test", r.test},
                 {"depth", r.depth},
                 {"sequences", r.sequences},
                 {"shared_prefix", r.shared},
                 {"tokens", r.tokens},
                 {"tok_s", r.tokens_rate()},
                 {"tok_s_min", r.slowest()},
                 {"tok_s_max", r.fastest()},
                 {"repetitions", static_cast<int64_t>(r.seconds.size())}};
  row["gb_s"] = decode ? Json(r.bytes_rate() / 1e9) : Json(nullptr);
  row["gb_s_limit"] = decode ? Json(eval::median(r.read_limits) / 1e9) : Json(nullptr);
  row["gb_s_share"] = decode ? Json(r.read_share()) : Json(nullptr);
  row["gop_s"] = r.operations_rate() / 1e9;
  row["gop_s_limit"] = eval::median(r.arithmetic_limits) / 1e9;
  row["gop_s_share"] = r.arithmetic_share();
  row["gop_s_kind"] = arithmetic_name(arithmetic);
  return row;
}

void print_csv(const std::vector<JsonObject>& rows) {
  for (size_t i = 0; i < rows.size(); i++) {
    std::string names, line;
    for (const auto& [name, value] : rows[i]) {
      const char* comma = line.empty() ? "" : ",";
      names += (names.empty() ? "" : ",") + std::string(name);
      line += comma + (value.is_null()     ? std::string()
                       : value.is_string() ? std::string(value.get_string())
                                           : to_text(value));
    }
    if (i == 0) fmt::print("{}\n", names);
    fmt::print("{}\n", line);
  }
}

void print_text(const std::vector<eval::BenchResult>& results, model::Activations arithmetic) {
  for (const auto& r : results) {
    fmt::print("{:7} depth {:5}, {:2} {}: {:8.1f} tok/s ({:.1f} to {:.1f})", r.test, r.depth, r.sequences,
               r.sequences == 1 ? "sequence"
               : r.shared       ? "on one prefix"
                                : "sequences",
               r.tokens_rate(), r.slowest(), r.fastest());
    if (r.test == "decode") fmt::print(", {:.1f} GB/s = {:.0f} % of reading", r.bytes_rate() / 1e9, 100 * r.read_share());
    fmt::print(", {:.0f} GOP/s = {:.0f} % of {}\n", r.operations_rate() / 1e9, 100 * r.arithmetic_share(),
               arithmetic_name(arithmetic));
  }
}

JsonObject machine_of(const BenchFlags& flags, const engine::LoadedModel& loaded, int threads,
                      const std::vector<eval::BenchResult>& results) {
  std::vector<double> reads, operations;
  for (const auto& r : results) {
    reads.insert(reads.end(), r.read_limits.begin(), r.read_limits.end());
    operations.insert(operations.end(), r.arithmetic_limits.begin(), r.arithmetic_limits.end());
  }
  JsonObject machine{{"cpu", cpu_name()},
                     {"threads", threads},
                     {"isa", loaded.model.ops().name},
                     {"model", loaded.description.name},
                     {"file", flags.model.model},
                     {"activations", flags.model.activations},
                     {"kv_type", kv_type_name(flags.model)},
                     {"weight_bytes", loaded.model.weight_bytes()},
                     {"unisono", UNISONO_VERSION}};
  if (!results.empty()) {
    machine["read_gb_s"] = eval::median(reads) / 1e9;
    machine[std::string(arithmetic_name(loaded.model.activations())) + "_gop_s"] = eval::median(operations) / 1e9;
  }
  return machine;
}

int bench(BenchFlags& flags) {
  auto load = load_options(flags.model);
  if (!load) return complain(load.error());
  ThreadTeam team(placement(flags.model));
  auto loaded = engine::load_model(flags.model.model, *load, team);  // random tokens need no tokenizer
  if (!loaded) return complain(loaded.error());
  auto& options = flags.options;
  options.kv = kv_type(flags.model);
  options.most_kv_bytes = free_memory();
  const int context = loaded->description.hparams.context_length;
  for (int depth : options.depths)
    if (depth + std::max(options.prompt, options.generate) > context)
      remark("unisono: depth {} goes beyond the model's context of {}: the speed is right, the text wouldn't be.\n", depth,
             context);
  const bool terminal = isatty(2) != 0;
  auto results = eval::bench(loaded->model, team, options, [&](const std::string& what) {
    if (terminal) remark("\r\x1b[K{}", what);
  });
  if (terminal) remark("\r\x1b[K");
  if (!results) return complain(results.error());
  std::vector<JsonObject> rows;
  for (const auto& r : *results) rows.push_back(row_of(r, loaded->model.activations()));
  if (flags.json) {
    fmt::print("{}\n", to_text(JsonObject{{"machine", machine_of(flags, *loaded, team.size(), *results)},
                                          {"results", JsonArray(rows.begin(), rows.end())}}));
  } else if (flags.csv) {
    print_csv(rows);
  } else {
    print_text(*results, loaded->model.activations());
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed, and the machine's limits beside them");
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);  // `bench grammar` takes none
  add_bench_grammar(*command, exit_code);
  auto& o = flags->options;
  command->add_option("--prompt", o.prompt, "Tokens of a prefill; 0: none")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--generate", o.generate, "Tokens of a decode; 0: none")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--depth", o.depths, "Positions before them; several as in 0,4096")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--sequences", o.sequences, "Sequences computed together; several as in 1,16")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--shared-prefix", o.shared_prefix,
                    "Decode of several sequences also with one copy of the depth's positions, in turns");
  command->add_option("--reps", o.repetitions, "Repetitions, after one warm-up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  auto* json = command->add_flag("--json", flags->json, "Print one JSON object");
  command->add_flag("--csv", flags->csv, "Print a line of names and a line of values for each test")->excludes(json);
  command->callback([command, flags, &exit_code] {
    if (command->got_subcommand("grammar")) return;
    exit_code =
        flags->model.model.empty() ? complain({"Give a MODEL to measure; --help says what else there is."}) : bench(*flags);
  });
}

}  // namespace unisono::apps
