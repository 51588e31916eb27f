// Input made to cost much: it is refused soon, or it works; it never hangs, and nothing is taken that shouldn't be.
#include <ctime>

#include "bytes.h"

namespace unisono::grammar {
namespace {

// Seconds of this thread's time: other load on the machine doesn't count. Slow builds (sanitizers) get more.
template <class Call>
double seconds(const Call& call) {
  timespec before{}, after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  call();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return double(after.tv_sec - before.tv_sec) + double(after.tv_nsec - before.tv_nsec) / 1e9;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr double kLimit = 5;
#else
constexpr double kLimit = 0.1;
#endif

std::string repeated(std::string_view text, int n) {
  std::string out;
  while (n-- > 0) out += text;
  return out;
}

void expect_quick(const std::string& text) {
  const Json schema = json(text);
  EXPECT_LT(seconds([&] { (void)Grammar::from_json_schema(schema); }), kLimit) << text.substr(0, 200);
}

TEST(Hostile, SchemasCostLittle) {
  expect_quick(repeated(R"({"not":)", 150) + "{}" + repeated("}", 150));
  expect_quick(repeated(R"({"properties":{"a":)", 90) + "{}" + repeated("}}", 90));
  expect_quick(repeated(R"({"oneOf":[{"type":"string"},)", 60) + "{}" + repeated("]}", 60));
  expect_quick(R"({"type": "string", "pattern": "(a|b|ab)*c{1000}(.*x.{500}){20}"})");
  expect_quick(
      R"({"type": "string", "allOf": [{"pattern": "^(a|b)*a(a|b){30}$"}, {"not": {"pattern": "^(a|b)*b(a|b){29}$"}}, {"pattern": "^(..)*$"}]})");
  expect_quick(R"({"type": "array", "minItems": 99999999, "maxItems": 99999999})");
  expect_quick(R"({"type": "string", "minLength": 90000000, "maxLength": 99999999})");
  expect_quick(R"({"type": "number", "multipleOf": 1e-300, "minimum": 1e300})");
  std::string branches, names, cross = R"({"type":"object","allOf":[)";
  for (int i = 0; i < 150; ++i)
    branches += (i ? "," : "") + std::string(R"({"properties":{"p)") + std::to_string(i) + R"(":{"type":"string"}}})";
  expect_quick(R"({"type":"object","oneOf":[)" + branches + "]}");
  for (int i = 0; i < 30; ++i)
    cross += (i ? "," : "") + std::string(R"({"anyOf":[{"required":["a)") + std::to_string(i) + R"("]},{"required":["b)" +
             std::to_string(i) + "\"]}]}";
  expect_quick(cross + "]}");
  for (int i = 0; i < 5000; ++i) names += (i ? "," : "") + std::string("\"n") + std::to_string(i) + "\"";
  expect_quick(R"({"type":"object","required":[)" + names + "]}");
  std::string cycle = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 100; ++i)
    cycle += (i ? ",\"d" : "\"d") + std::to_string(i) + R"(":{"allOf":[{"$ref":"#/$defs/d)" +
             std::to_string((i + 1) % 100) + R"("},{"$ref":"#/$defs/d)" + std::to_string((i + 7) % 100) + "\"}]}";
  expect_quick(cycle + "}}");
}

TEST(Hostile, PatternsAndGrammarsCostLittle) {
  for (const std::string& pattern :
       {repeated("(", 200) + "a" + repeated(")*", 200), repeated("(a?", 100) + repeated(")", 100) + repeated("a", 100),
        std::string("((((a{1,1000}){1,1000}){1,1000}){1,1000})"), repeated("(?=.*a)", 2000), repeated("a|", 20000) + "b",
        std::string("[\\s\\S]{100000000}"), std::string(100000, 'a'), std::string("\xFF\xFE"), std::string("a\0b", 3),
        repeated("(?!", 100) + repeated(")", 100), repeated("(.*a.*|.*b.*)", 50), repeated("\\p{L}", 10000)})
    EXPECT_LT(seconds([&] { (void)Grammar::from_regex(pattern); }), kLimit) << pattern.substr(0, 60);
  for (const std::string& text :
       {"root ::= " + repeated("(", 5000), "root ::= " + repeated("\"a\" | ", 50000) + "\"b\"",
        std::string("root ::= ((\"a\" root){1000}){1000}"), "root ::= " + repeated("root ", 2000),
        std::string("root ::= [\\U0010FFFF-\\U0010FFFF]{1000000}"), std::string("root ::= \"\xC0\"")}) {
    EXPECT_LT(seconds([&] { (void)Grammar::from_gbnf(text); }), kLimit) << text.substr(0, 60);
    EXPECT_LT(seconds([&] { (void)Grammar::from_lark(text); }), kLimit) << text.substr(0, 60);
  }
  std::string chain;
  for (int i = 0; i < 3000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\" root?\n";
  EXPECT_LT(seconds([&] { (void)Grammar::from_gbnf("root ::= r0\n" + chain + "r3000 ::= \"y\""); }), kLimit);
  std::string calls;
  for (int i = 0; i < 3000; ++i)
    calls += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " | r" + std::to_string(i + 1) + " \"x\"\n";
  EXPECT_LT(seconds([&] {
              const GrammarPtr grammar = made(Grammar::from_gbnf("root ::= r0\n" + calls + "r3000 ::= \"y\" root?"));
              EXPECT_TRUE(takes(grammar, "yyxxx"));
            }),
            kLimit);
}

TEST(Hostile, LongAnswersStayCheap) {
  const GrammarPtr grammar = schema("{}");
  Matcher matcher(grammar, byte_trie());
  EXPECT_LT(seconds([&] {
              EXPECT_TRUE(matcher.accept_bytes(repeated("[", 20000)));
              EXPECT_TRUE(matcher.accept_bytes(repeated("]", 20000)));
            }),
            kLimit * 10);
  EXPECT_TRUE(matcher.may_end());
  const GrammarPtr text = schema(R"({"type": "string", "maxLength": 1000000})");
  Matcher writer(text, byte_trie());
  EXPECT_LT(seconds([&] { EXPECT_TRUE(writer.accept_bytes("\"" + std::string(100000, 'x') + "\"")); }), kLimit * 20);
}

}  // namespace
}  // namespace unisono::grammar
