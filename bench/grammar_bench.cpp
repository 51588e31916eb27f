// Scores constrained decoding on schemas with instances, for a real vocabulary.
//   grammar_bench CASES.jsonl[.gz] VOCABULARY.gguf [--any-order] [--summary] [--first N]
// One JSON object goes to standard output; grammar/benchmark.h says what it holds.
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "grammar/benchmark.h"
#include "text/vocabulary_file.h"

namespace unisono::grammar {
namespace {

constexpr int kMaxNesting = 1000;

// The next line without its end; false: there is none.
bool next_line(gzFile file, std::string* line) {
  char part[1 << 16];
  line->clear();
  while (gzgets(file, part, sizeof part)) {
    line->append(part);
    if (line->back() != '\n') continue;
    line->pop_back();
    return true;
  }
  return !line->empty();
}

int run(int argc, char** argv) {
  const char *cases = nullptr, *vocabulary = nullptr;
  JsonSchemaOptions options;
  bool summary = false;
  long first = -1;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--any-order"))
      options.any_order = true;
    else if (!std::strcmp(argv[i], "--summary"))
      summary = true;
    else if (!std::strcmp(argv[i], "--first") && i + 1 < argc)
      first = std::atol(argv[++i]);
    else
      (cases ? vocabulary : cases) = argv[i];
  }
  gzFile file = vocabulary ? gzopen(cases, "rb") : nullptr;
  if (!file) {
    std::fprintf(stderr, "usage: grammar_bench CASES.jsonl[.gz] VOCABULARY.gguf [--any-order] [--summary] [--first N]\n");
    return 2;
  }
  const text::VocabularyFile opened = text::open_vocabulary(vocabulary);
  const text::Tokenizer tokenizer = text::tokenizer_of(opened);
  std::vector<TokenId> ends, controls;
  if (tokenizer.eos()) ends.push_back(*tokenizer.eos());
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_control(id) && id != tokenizer.eos()) controls.push_back(id);
  const auto trie = TokenTrie::build(tokenizer.vocabulary(), ends, controls);
  Benchmark benchmark(
      trie, [&](std::string_view text) { return tokenizer.encode(text, false, false); }, options);
  std::string line;
  for (long n = 0; n != first && next_line(file, &line); ++n) {
    const Result<Json> parsed = parse_json(line, kMaxNesting);
    const Result<void> added = parsed ? benchmark.add(*parsed) : Result<void>(parsed.error());
    if (added) continue;
    std::fprintf(stderr, "grammar_bench: line %ld: %s\n", n + 1, added.error().message.c_str());
    return 1;
  }
  gzclose(file);
  const Json report = benchmark.report();
  std::printf("%s\n", to_text(summary ? report.get_object().at("summary") : report).c_str());
  return 0;
}

}  // namespace
}  // namespace unisono::grammar

int main(int argc, char** argv) { return unisono::grammar::run(argc, argv); }
