#include <algorithm>
#include <random>

#include "bytes.h"
#include "grammar/core.h"

namespace unisono::grammar {
namespace {

// Pieces as tokenizers have them: words, quotes with what follows, escapes, halves of characters, doubles.
std::shared_ptr<const TokenTrie> word_trie() {
  static const std::shared_ptr<const TokenTrie> trie = [] {
    Texts tokens;
    for (int b = 0; b < 256; ++b) tokens.add(std::string(1, char(b)));
    for (const char* t :
         {"\"",       "\":",      "\": ",     "\": \"", "\",",   "\", \"",       "\"}", "\"]",  "{\"",  "[\"",   "[]",
          "{}",       "}}",       "]}",       "},",     ", ",    ": ",           "a",   "ab",   "abc",  "name",  "na",
          "age",      " a",       "\\n",      "\\\"",   "\\u",   "\\u00",        "00",  "1",    "12",   "123",   "0.5",
          "-1",       "1e5",      "true",     "false",  "null",  "tr",           "ue",  "\n",   "\n  ", "\xC3",  "\xA9",
          "\xC3\xA9", "\xF0\x9F", "\x98\x80", "x\"",    "xy\"}", "a\", \"b\": ", "b",   "bb",   "foo",  "foo\"", "2020-",
          "01-",      "@",        "a@b",      ".com",   "\"a",   "\"na",         " \"", " \"a", "a\\",  "\"\\"})
      tokens.add(t);
    tokens.add("name");  // the same bytes twice
    tokens.add("<end>");
    tokens.add("<control>");
    const auto n = TokenId(tokens.size());
    return TokenTrie::build(tokens, {n - 2}, {n - 1});
  }();
  return trie;
}

const char* const kSchemas[] = {
    R"({})",
    R"({"type": "object"})",
    R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 1, "maximum": 150}}, "required": ["name"]})",
    R"({"type": "object", "properties": {"a": {"enum": ["ab", "abc", 1, 12, null]}, "b": {"type": "array", "items": {"type": "number"}}}, "additionalProperties": false})",
    R"({"type": "object", "patternProperties": {"^a": {"type": "string", "maxLength": 3}}, "additionalProperties": {"type": "boolean"}, "minProperties": 2})",
    R"({"type": "string", "minLength": 2, "maxLength": 5})",
    R"({"type": "string", "maxLength": 40})",
    R"({"type": "string", "pattern": "^[a-c]+(foo|bar)?$", "minLength": 3})",
    R"({"type": "string", "not": {"enum": ["a", "abc", "foo"]}})",
    R"({"type": "string", "format": "date"})",
    R"({"type": "string", "format": "email"})",
    R"({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 2, "maxItems": 4})",
    R"({"type": "array", "items": {"enum": ["a", "b", 1, true]}, "uniqueItems": true})",
    R"({"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}, {"type": "object", "properties": {"b": {"type": "string"}}}]})",
    R"({"type": "array", "contains": {"type": "string"}, "items": {"type": ["string", "integer"]}, "maxItems": 4})",
    R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["b"], "additionalProperties": false}}})",
    R"({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": -3})",
};

std::vector<GrammarPtr> grammars(const JsonSchemaOptions& options) {
  std::vector<GrammarPtr> out;
  for (const char* text : kSchemas) out.push_back(schema(text, options));
  out.push_back(made(Grammar::from_regex("(ab|abc)*(foo|\\d{2,4})?")));
  out.push_back(made(Grammar::from_choices({"abc", "ab", "name", "true"})));
  out.push_back(
      made(Grammar::from_gbnf("root ::= item (\", \" item)*\nitem ::= \"a\" | \"ab\" | \"[\" root \"]\" | [0-9]{1,3}")));
  out.push_back(made(Grammar::from_lark(
      "start: expr\nexpr: expr \"+\" term | term\nterm: NUMBER | \"(\" expr \")\"\n%import common.NUMBER\n%ignore \" \"")));
  const Shape object = Shape::json(json(R"({"type": "object"})"));
  out.push_back(made(Grammar::from_shape(Shape::sequence(
      {Shape::many(Shape::sequence({Shape::until("<a>", {}), object, Shape::text("</a>")})), Shape::free({"<a>"})}))));
  out.push_back(made(Grammar::from_shape(Shape::sequence(
      {Shape::optional(Shape::until("</t>", {})), Shape::choice({Shape::free({"<a>", "<b"}, "\\s*[{]"), object})}))));
  return out;
}

// By trying every token on a matcher of its own.
std::vector<uint64_t> by_force(const Matcher& matcher, const TokenTrie& trie) {
  std::vector<uint64_t> out(trie.mask_words());
  for (TokenId id = 0; id < trie.vocab_size(); ++id) {
    Matcher tried = matcher;
    if (!tried.accept(id)) continue;
    out[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64);
  }
  return out;
}

std::vector<TokenId> members(const std::vector<uint64_t>& bits) {
  std::vector<TokenId> out;
  for (size_t i = 0; i < bits.size() * 64; ++i)
    if ((bits[i / 64] >> (i % 64)) & 1) out.push_back(TokenId(i));
  return out;
}

TEST(Mask, EqualsTryingEveryToken) {
  std::mt19937 random(3);
  const auto trie = word_trie();
  for (const bool any_order : {false, true}) {
    for (const bool caching : {true, false}) {
      JsonSchemaOptions options;
      options.any_order = any_order;
      for (const GrammarPtr& grammar : grammars(options)) {
        ASSERT_TRUE(grammar);
        grammar->core().caching = caching;
        for (int walk = 0; walk < 6; ++walk) {
          Matcher matcher(grammar, trie);
          std::vector<uint64_t> bits(trie->mask_words());
          for (int step = 0; step < 25 && !matcher.ended(); ++step) {
            matcher.mask(bits);
            ASSERT_EQ(members(bits), members(by_force(matcher, *trie)));
            const std::vector<TokenId> allowed = members(bits);
            ASSERT_FALSE(allowed.empty()) << "a dead end";
            ASSERT_TRUE(matcher.accept(allowed[random() % allowed.size()]));
          }
        }
      }
    }
  }
}

TEST(Mask, CopiesGoTheirOwnWays) {
  std::mt19937 random(9);
  const auto trie = word_trie();
  for (const GrammarPtr& grammar : grammars({})) {
    std::vector<Matcher> kept{Matcher(grammar, trie)};
    std::vector<std::vector<uint64_t>> seen;
    for (int step = 0; step < 60; ++step) {
      std::vector<uint64_t> bits(trie->mask_words());
      kept.back().mask(bits);
      if (seen.size() < kept.size()) seen.push_back(bits);
      ASSERT_EQ(seen.back(), bits);
      if (kept.size() > 1 && random() % 3 == 0) {
        const size_t back = 1 + random() % (kept.size() - 1);
        kept.erase(kept.end() - static_cast<std::ptrdiff_t>(back), kept.end());
        seen.resize(kept.size());
        continue;
      }
      const std::vector<TokenId> allowed = members(bits);
      if (allowed.empty()) break;
      Matcher next = kept.back();
      ASSERT_TRUE(next.accept(allowed[random() % allowed.size()]));
      kept.push_back(std::move(next));
    }
  }
}

TEST(Mask, OnlyAnEndTokenFollowsTheEnd) {
  const auto trie = word_trie();
  Matcher matcher(made(Grammar::from_choices({"abc"})), trie);
  EXPECT_FALSE(matcher.may_end());
  ASSERT_TRUE(matcher.accept_bytes("abc"));
  std::vector<uint64_t> bits(trie->mask_words());
  matcher.mask(bits);
  EXPECT_EQ(members(bits), trie->end_tokens());
  ASSERT_TRUE(matcher.accept(trie->end_tokens()[0]));
  EXPECT_TRUE(matcher.ended());
  matcher.mask(bits);
  EXPECT_TRUE(members(bits).empty());
}

}  // namespace
}  // namespace unisono::grammar
