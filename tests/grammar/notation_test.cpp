#include "bytes.h"

namespace unisono::grammar {
namespace {

TEST(Gbnf, ReadsRulesClassesAndRepetitions) {
  const GrammarPtr grammar = made(Grammar::from_gbnf(R"x(
# a list of words
root  ::= "[" ws (word ("," ws word)*)? "]"
word  ::= [a-z]{2,4} | "\"" [^"\x0A]+ "\""
ws    ::= [ \t]*
)x"));
  EXPECT_TRUE(takes(grammar, "[]"));
  EXPECT_TRUE(takes(grammar, "[ ab,\tabcd,\"x y\xC3\xA9\"]"));
  EXPECT_FALSE(takes(grammar, "[a]"));
  EXPECT_FALSE(takes(grammar, "[abcde]"));
  EXPECT_FALSE(takes(grammar, "[ab,]"));
}

TEST(Gbnf, Recursion) {
  const GrammarPtr nested = made(Grammar::from_gbnf("root ::= \"(\" root \")\" root | \"\""));
  EXPECT_TRUE(takes(nested, "(()())()"));
  EXPECT_FALSE(takes(nested, "(()"));
  const GrammarPtr right = made(Grammar::from_gbnf("root ::= \"a\" root | \"b\""));
  EXPECT_TRUE(takes(right, std::string(20000, 'a') + "b"));
  const GrammarPtr left = made(Grammar::from_gbnf("root ::= root \"+\" [0-9] | [0-9]"));
  EXPECT_TRUE(takes(left, "1+2+3"));
  EXPECT_FALSE(takes(left, "+1"));
  const GrammarPtr ambiguous = made(Grammar::from_gbnf("root ::= \"a\" root root | \"a\""));
  EXPECT_TRUE(takes(ambiguous, std::string(201, 'a')));
  EXPECT_FALSE(takes(ambiguous, std::string(200, 'a')));
}

TEST(Gbnf, RefusesWithASentence) {
  for (const char* text : {"", "root ::= x", "a ::= \"b\"", "root ::= \"a", "root ::= [a", "root ::= (\"a\"",
                           "root ::= \"a\"\nroot ::= \"b\"", "root ::= a\na ::= b \"x\"\nb ::= a | \"y\"", "root = \"a\"",
                           "root ::= \"a\"{3,1}", "root ::= \"\\q\"", "root ::= <think>", "root ::= a\na ::= \"x\" a"}) {
    Result<GrammarPtr> grammar = Grammar::from_gbnf(text);
    EXPECT_FALSE(grammar.ok()) << text;
    EXPECT_FALSE(!grammar && grammar.error().message.empty());
  }
}

// What can't be unrolled is refused: nothing of the language is lost in silence.
TEST(Gbnf, RulesThatBeginWithThemselves) {
  const GrammarPtr sums = made(Grammar::from_gbnf("root ::= root \"+\" root | root? \"!\" | \"a\""));
  for (const char* text : {"a", "a+a", "a+a+a", "!", "a!", "a+a!!+!"}) EXPECT_TRUE(takes(sums, text)) << text;
  for (const char* text : {"a+", "+a", "aa"}) EXPECT_FALSE(takes(sums, text)) << text;
  for (const char* text : {"root ::= \"o\"? root \"x\" | \"y\"", "root ::= root* \"x\" | \"y\"", "root ::= root root | \"y\" | \"\"",
                           "root ::= opt root \"x\" | \"y\"\nopt ::= \"(\" opt \")\" | \"\""}) {
    const auto grammar = Grammar::from_gbnf(text);
    ASSERT_FALSE(grammar.ok()) << text;
    EXPECT_NE(grammar.error().message.find("begins with itself"), std::string::npos) << grammar.error().message;
  }
}

TEST(Lark, ReadsTheCommonSubset) {
  const GrammarPtr grammar = made(Grammar::from_lark(R"x(
// a calculator
?start: sum
?sum: product | sum "+" product -> add
    | sum "-" product
product: atom ("*" atom)*
atom: NUMBER | "(" sum ")" | NAME ["!"] | HEX~2..3
NAME.2: /[a-z]\w*/
HEX: "0x"i "a".."f"
%import common.NUMBER
%import common.WS_INLINE -> SPACE
%ignore SPACE
)x"));
  EXPECT_TRUE(takes(grammar, "1 + 2*(3 - x1) "));
  EXPECT_TRUE(takes(grammar, " foo ! * 2.5e3"));
  EXPECT_TRUE(takes(grammar, "0xa0Xb"));
  EXPECT_FALSE(takes(grammar, "0xa"));
  EXPECT_FALSE(takes(grammar, "1 +"));
  EXPECT_FALSE(takes(grammar, "X"));
  EXPECT_TRUE(takes(made(Grammar::from_lark("%import common (INT,\n  WS)\nstart: INT INT\n%ignore WS")), " 1 \n 2"));
  for (const char* text : {"%import common (INT\nstart: INT", "%import common (NO)\nstart: NO", "%import commons.INT\nstart: INT", "%import common\nstart: INT"})
    EXPECT_FALSE(Grammar::from_lark(text).ok()) << text;
  for (const char* text : {"start: a", "start: \"a", "start: /a", "start: /a/i", "%declare X\nstart: X", "start{x}: x",
                           "%import other.X\nstart: X", "%ignore x\nstart: \"a\"", "start: \"a\"~3..1", "start: \"\\", "start: \"\\x", "start: \"\\u12", "start: /\\", "start: /[\\"})
    EXPECT_FALSE(Grammar::from_lark(text).ok()) << text;
  for (const char* text : {"root ::= \"\\", "root ::= \"\\x", "root ::= \"\\u12", "root ::= [\\", "root ::= [a-\\", "root ::= [\\x1"})
    EXPECT_FALSE(Grammar::from_gbnf(text).ok()) << text;
}

TEST(Choices, AreTheWholeAnswer) {
  const GrammarPtr grammar = made(Grammar::from_choices({"yes", "no", "not sure"}));
  EXPECT_TRUE(takes(grammar, "no"));
  EXPECT_TRUE(takes(grammar, "not sure"));
  EXPECT_FALSE(takes(grammar, "not"));
  EXPECT_FALSE(Grammar::from_choices({}).ok());
  EXPECT_FALSE(Grammar::from_choices({"\xFF"}).ok());
}

TEST(RegexGrammar, MatchesTheWholeAnswer) {
  const GrammarPtr grammar = made(Grammar::from_regex("\\d{3}-\\d{4}"));
  EXPECT_TRUE(takes(grammar, "555-1234"));
  EXPECT_FALSE(takes(grammar, "x555-1234"));
  EXPECT_FALSE(takes(grammar, "555-12345"));
  EXPECT_FALSE(Grammar::from_regex("a(?!)").ok());
}

Shape tagged(const std::string& begin, const char* schema, const std::string& end) {
  return Shape::sequence({Shape::until(begin, {"<f>", "<g>"}), Shape::json(json(schema)), Shape::text(end)});
}

TEST(Shapes, ConstrainOnlyBehindATag) {
  const char* f =
      R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})";
  const Shape tags = Shape::choice({tagged("<f>", f, "</f>"), tagged("<g>", R"({"type": "boolean"})", "")});
  const Shape rest = Shape::free({"<f>", "<g>"});
  const GrammarPtr grammar = made(Grammar::from_shape(Shape::sequence({Shape::many(tags), rest})));
  EXPECT_TRUE(takes(grammar, ""));
  EXPECT_TRUE(takes(grammar, "free < text <f <"));
  EXPECT_TRUE(takes(grammar, "x <f>{\"a\": 1}</f> then <g>true and <<f>{\"a\": 2}</f>"));
  EXPECT_FALSE(takes(grammar, "x <f>{\"b\": 1}</f>"));
  EXPECT_FALSE(takes(grammar, "x <f>"));
  EXPECT_FALSE(takes(grammar, "<f>{\"a\": 1}<f>"));
  const GrammarPtr once = made(Grammar::from_shape(tags));
  EXPECT_FALSE(takes(once, "nothing"));
  EXPECT_TRUE(takes(once, "so: <f>{\"a\": 1}</f>"));
  EXPECT_FALSE(takes(once, "so: <f>{\"a\": 1}</f> more"));
}

TEST(Shapes, PartsOfEveryKindFollowEachOther) {
  const GrammarPtr grammar = made(Grammar::from_shape(Shape::sequence(
      {Shape::optional(Shape::sequence({Shape::text("<think>"), Shape::until("</think>", {})})),
       Shape::written(Shape::Kind::regex, "\\s*"), Shape::one_of({"a", "ab"}),
       Shape::choice({Shape::written(Shape::Kind::gbnf, "root ::= \"(\" root \")\" | \"\""),
                      Shape::written(Shape::Kind::lark, "start: NUMBER (\",\" NUMBER)*\n%import common.NUMBER")})})));
  EXPECT_TRUE(takes(grammar, "<think>a < b</thin </think>\n\nab(())"));
  EXPECT_TRUE(takes(grammar, "a1,2.5"));
  EXPECT_TRUE(takes(grammar, "a"));
  EXPECT_FALSE(takes(grammar, "<think>a</think></think>a"));
  EXPECT_FALSE(takes(grammar, "ab(()"));
  EXPECT_FALSE(takes(grammar, "<think>a"));
}

TEST(Shapes, ListsHaveTheirSeparatorBetweenOnly) {
  const GrammarPtr grammar = made(Grammar::from_shape(Shape::listed(Shape::one_of({"a", "bb"}), Shape::text(", "))));
  EXPECT_TRUE(takes(grammar, "a"));
  EXPECT_TRUE(takes(grammar, "bb, a, a"));
  for (const char* text : {"", "a,", "a, ", ", a", "aa"}) EXPECT_FALSE(takes(grammar, text)) << text;
}

TEST(Shapes, FreeTextMayNotBeginOrGoOnAsTold) {
  const GrammarPtr grammar = made(Grammar::from_shape(Shape::free({"<f>"}, "\\s*\\{\\s*\"name\"")));
  EXPECT_TRUE(takes(grammar, "so {\"name\": 1}"));
  EXPECT_TRUE(takes(grammar, "{\"names"));
  EXPECT_FALSE(takes(grammar, " { \"name\""));
  EXPECT_FALSE(takes(grammar, "a<f>"));
}

TEST(Shapes, WhatCannotBeReachedIsRefused) {
  const Shape unreachable = Shape::until("<f>", {"f"});
  for (const Shape& shape : {Shape::choice({}), Shape::until("", {}), Shape::free({""}), unreachable, Shape::text("\xFF"),
                             Shape::sequence({Shape::text("a"), Shape::written(Shape::Kind::regex, "a(?!)")}),
                             Shape::sequence({Shape::text("a"), Shape::json(json("false"))})})
    EXPECT_FALSE(Grammar::from_shape(shape).ok()) << shape.key();
  auto refused = Grammar::from_shape(Shape::sequence({Shape::json(json(R"({"items": {"type": "x"}})"), "tools[3]")}));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().subject.starts_with("tools[3]")) << refused.error().subject;
  EXPECT_NE(Shape::text("ab").key(), Shape::one_of({"a", "b"}).key());
}

}  // namespace
}  // namespace unisono::grammar
