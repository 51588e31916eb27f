// Anything as a schema, a pattern or a grammar: it is refused, or it works and every allowed step can be taken.
#include <cstdint>
#include <string_view>

#include "grammar/matcher.h"

namespace unisono::grammar {
namespace {

std::shared_ptr<const TokenTrie> trie() {
  static const std::shared_ptr<const TokenTrie> made = [] {
    Texts tokens;
    for (int b = 0; b < 256; ++b) tokens.add(std::string(1, char(b)));
    for (const char* t : {"\"", "\": ", "\", \"", "{\"", "\"}", "]}", "ab", "12", "\\u00", "\xC3\xA9", "true"})
      tokens.add(t);
    tokens.add("");
    return TokenTrie::build(tokens, {TokenId(tokens.size() - 1)}, {});
  }();
  return made;
}

Result<std::shared_ptr<const Grammar>> compile(uint8_t how, std::string_view text) {
  if (how % 4 == 1) return Grammar::from_regex(text);
  if (how % 4 == 2) return Grammar::from_gbnf(text);
  if (how % 4 == 3) return Grammar::from_lark(text);
  const Result<Json> schema = parse_json(text, 200);
  if (!schema) return schema.error();
  JsonSchemaOptions options;
  options.any_order = (how & 4) != 0;
  return Grammar::from_json_schema(*schema, options);
}

}  // namespace
}  // namespace unisono::grammar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace unisono::grammar;
  if (size < 2) return 0;
  const auto grammar = compile(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  if (!grammar) return 0;
  Matcher matcher(*grammar, trie());
  std::vector<uint64_t> bits(trie()->mask_words());
  // The input chooses among what is allowed.
  for (size_t step = 0; step < 40 && !matcher.ended(); ++step) {
    matcher.mask(bits);
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < trie()->vocab_size(); ++id)
      if ((bits[size_t(id) / 64] >> (id % 64)) & 1) allowed.push_back(id);
    unisono::check(!allowed.empty(), "no state is a dead end");
    unisono::check(matcher.accept(allowed[(data[step % size] * 7 + step) % allowed.size()]),
                   "what a mask allows is accepted");
  }
  return 0;
}
