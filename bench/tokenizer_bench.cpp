// How fast tokenizers are made, encode and decode.
//   tokenizer_bench TEXT VOCABULARY.gguf ... [--benchmark_...]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <vector>

#include "text/detokenizer.h"
#include "text/vocabulary_file.h"

namespace unisono::text {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void load(benchmark::State& state, const VocabularyFile* file) {
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer_of(*file));
}

void encode(benchmark::State& state, const Tokenizer* tokenizer, const std::string* text) {
  size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer->encode(*text, false, false).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text->size()));
  state.counters["tokens"] = static_cast<double>(tokens);
}

void decode(benchmark::State& state, const Tokenizer* tokenizer, const std::string* text) {
  const std::vector<TokenId> ids = tokenizer->encode(*text, false, false);
  for (auto _ : state) benchmark::DoNotOptimize(detokenize(*tokenizer, ids));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text->size()));
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_bench TEXT VOCABULARY.gguf ... [--benchmark_...]\n");
    return 2;
  }
  const std::string text = file_text(argv[1]);
  std::vector<VocabularyFile> files;
  std::vector<Tokenizer> tokenizers;
  for (int i = 2; i < argc; i++) files.push_back(open_vocabulary(argv[i]));
  for (const VocabularyFile& file : files) tokenizers.push_back(tokenizer_of(file));
  for (size_t i = 0; i < files.size(); i++) {
    const std::string name = name_of(argv[i + 2]);
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), encode, &tokenizers[i], &text)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode, &tokenizers[i], &text)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("load/" + name).c_str(), load, &files[i])->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace unisono::text

int main(int argc, char** argv) { return unisono::text::run(argc, argv); }
