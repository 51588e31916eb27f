// unisono bench grammar: constrained decoding scored on JSON Schemas with instances, for a real vocabulary.
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/json.h"
#include "commands.h"
#include "engine/load.h"
#include "grammar/benchmark.h"
#include "serve/constraints.h"
#include "session.h"

namespace unisono::apps {

namespace {

constexpr int kMaxNesting = 1000;  // of a case: schemas come nested deeper than requests may be

struct GrammarFlags {
  std::string cases{}, model{};
  bool any_order = false, json = false;
  int first = 0;
};

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};
using Gzip = std::unique_ptr<gzFile_s, CloseGzip>;

// The next line without its end; false: there is none.
bool next_line(gzFile file, std::string& line) {
  char part[1 << 16];
  line.clear();
  while (gzgets(file, part, sizeof part) != nullptr) {
    line += part;
    if (line.back() != '\n') continue;
    line.pop_back();
    return true;
  }
  return !line.empty();
}

int bench_grammar(const GrammarFlags& flags) {
  auto file = checkpoint::Checkpoint::open(flags.model);
  if (!file) return complain(file.error());
  auto tokenizer = engine::load_tokenizer(*file);
  if (!tokenizer) return complain(tokenizer.error());
  const Gzip cases(gzopen(flags.cases.c_str(), "rb"));  // reads plain files too
  if (!cases) return complain({"Can't read '" + flags.cases + "': " + std::strerror(errno) + ".", flags.cases});
  std::vector<text::TokenId> ends;
  if (tokenizer->eos()) ends.push_back(*tokenizer->eos());
  grammar::Benchmark benchmark(
      serve::token_trie(*tokenizer, ends), [&](std::string_view text) { return tokenizer->encode(text, false, false); },
      {.any_order = flags.any_order});
  const bool terminal = isatty(2) != 0;
  std::string line;
  for (int n = 1; (flags.first == 0 || n <= flags.first) && next_line(cases.get(), line); n++) {
    auto parsed = parse_json(line, kMaxNesting);
    const Result<void> added = parsed.ok() ? benchmark.add(*parsed) : Result<void>(parsed.error());
    if (!added.ok()) return complain({fmt::format("Line {} of '{}' is no case: {}", n, flags.cases, added.error().message)});
    if (terminal && n % 100 == 0) remark("\r\x1b[K{} schemas", n);
  }
  if (terminal) remark("\r\x1b[K");
  int code = 0;
  const char* why = gzerror(cases.get(), &code);
  if (code != Z_OK) return complain({fmt::format("Can't read {}.", why)});  // begins with the file's name
  const Json report = benchmark.report();
  fmt::print("{}\n", to_text(flags.json ? report : report.get_object().at("summary")));
  return 0;
}

}  // namespace

void add_bench_grammar(CLI::App& bench, int& exit_code) {
  auto flags = std::make_shared<GrammarFlags>();
  CLI::App* command = bench.add_subcommand("grammar", "Score constrained decoding on JSON Schemas with instances (MaskBench)");
  command->add_option("FILE", flags->cases, "Cases, a line of JSON each: name, schema, tests; may be gzipped")->required();
  command->add_option("--tokenizer", flags->model, "Model file (GGUF); its vocabulary is enough")->required();
  command->add_flag("--any-order", flags->any_order, "Keys in any order, not as the schema declares them");
  command->add_option("--first", flags->first, "Only so many cases; 0: all")->check(CLI::Range(0, 1 << 30))->capture_default_str();
  command->add_flag("--json", flags->json, "Print the summary and every schema that wasn't right, not the summary alone");
  command->callback([flags, &exit_code] { exit_code = bench_grammar(*flags); });
}

}  // namespace unisono::apps
