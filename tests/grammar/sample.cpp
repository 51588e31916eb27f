// Writes answers at random, as a model with no sense would: for each line {"name", "schema"} of standard input, walks the
// masks until an end and prints {"name", "schema", "text"}, or "refused" or "cut" instead of the text. For validate.py.
//   grammar_sample ANSWERS SEED [--any-order]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

#include "grammar/matcher.h"

namespace unisono::grammar {
namespace {

constexpr int kMaxSteps = 3000;

std::string answer(const std::shared_ptr<const Grammar>& grammar, const std::shared_ptr<const TokenTrie>& trie,
                   std::mt19937& random, bool* ended) {
  Matcher matcher(grammar, trie);
  std::vector<uint64_t> bits(trie->mask_words());
  std::string out;
  for (int step = 0; step < kMaxSteps; ++step) {
    matcher.mask(bits);
    std::vector<TokenId> all, closing;
    for (TokenId id = 0; id < trie->vocab_size(); ++id) {
      if (!((bits[size_t(id) / 64] >> (id % 64)) & 1)) continue;
      all.push_back(id);
      // Endings are rare among bytes; without help few answers would come to one.
      if (id == '"' || id == '}' || id == ']' || trie->is_end(id)) closing.push_back(id);
    }
    if (all.empty()) break;
    const auto& from = !closing.empty() && random() % 3 == 0 ? closing : all;
    const TokenId token = from[random() % from.size()];
    check(matcher.accept(token), "a token that the mask allows is accepted");
    if (matcher.ended()) return *ended = true, out;
    out += trie->bytes(token);
  }
  return *ended = false, out;
}

int run(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: grammar_sample ANSWERS SEED [--any-order]\n"), 2;
  const int answers = std::atoi(argv[1]);
  std::mt19937 random(static_cast<uint32_t>(std::atoi(argv[2])));
  JsonSchemaOptions options;
  options.any_order = argc > 3 && !std::strcmp(argv[3], "--any-order");
  Texts tokens;
  for (int b = 0; b < 256; ++b) tokens.add(std::string(1, char(b)));
  tokens.add("");
  const auto trie = TokenTrie::build(tokens, {256}, {});
  for (std::string line; std::getline(std::cin, line);) {
    const Result<Json> test = parse_json(line, 1000);
    if (!test || !test->is_object()) continue;
    JsonObject out{{"name", test->get_object().at("name")}, {"schema", test->get_object().at("schema")}};
    const auto grammar = Grammar::from_json_schema(out["schema"], options);
    for (int i = 0; i < answers; ++i) {
      bool ended = false;
      for (const char* key : {"text", "cut", "refused"}) out.erase(key);
      if (!grammar) {
        out["refused"] = grammar.error().message;
      } else {
        std::string text = answer(*grammar, trie, random, &ended);
        if (ended)
          out["text"] = text;
        else
          out["cut"] = text.size();
      }
      std::printf("%s\n", to_text(out).c_str());
      if (!grammar) break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace unisono::grammar

int main(int argc, char** argv) { return unisono::grammar::run(argc, argv); }
