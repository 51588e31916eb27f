#include "bytes.h"

namespace unisono::grammar {
namespace {

struct Verdict {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

void check_all(const std::vector<Verdict>& verdicts, const JsonSchemaOptions& options = {}) {
  for (const Verdict& v : verdicts) {
    const GrammarPtr grammar = schema(v.schema, options);
    for (const char* text : v.valid) EXPECT_TRUE(takes(grammar, text)) << v.schema << " must take " << text;
    for (const char* text : v.invalid) EXPECT_FALSE(takes(grammar, text)) << v.schema << " must not take " << text;
  }
}

TEST(Schema, StringsByTheirDecodedContent) {
  check_all({
      {R"({"type": "string", "maxLength": 2})",
       {R"("ab")", R"("\u00e9\n")", "\"\xF0\x9F\x98\x80x\"", R"("\ud83d\ude00x")"},
       {R"("abc")", R"("\ud83d")", R"("\x")", "\"a\nb\"", "\"\xFF\""}},
      {R"({"type": "string", "pattern": "^\\w+$", "minLength": 3, "maxLength": 4})",
       {R"("abc")", R"("\u0061bc")"},
       {R"("ab")", R"("a c")", R"("abcde")"}},
      {R"({"type": "string", "format": "date", "pattern": "^2024"})",
       {R"("2024-02-29")"},
       {R"("2023-01-01")", R"("2024-02-30")"}},
      {R"({"not": {"type": "string", "pattern": "^a"}})", {R"("b")", "1", "{}"}, {R"("a")", R"("ab")"}},
      {R"({"enum": ["a\"b", "\u00e9", "x/y"]})", {R"("a\"b")", "\"\xC3\xA9\"", R"("x/y")"}, {R"("a")", R"("x")"}},
  });
}

TEST(Schema, HalvesOfCharactersLeadToWholeOnes) {
  const GrammarPtr faces = schema(R"({"type": "string", "pattern": "^[\\u{1F600}-\\u{1F64F}]+$"})");
  EXPECT_TRUE(takes(faces, R"("\ud83d\uDE00")"));
  for (const bool any : {true, false})
    for (int half = 0xD800; half < 0xE000; half += any ? 1 : 0x100) {
      const GrammarPtr grammar = any ? faces : schema(R"({"type": "string"})");
      char text[16];
      std::snprintf(text, sizeof text, "\"\\u%x", half);
      EXPECT_EQ(Matcher(grammar, byte_trie()).accept_bytes(text), any ? half == 0xD83D : half < 0xDC00) << text;
    }
}

TEST(Schema, Numbers) {
  check_all({
      {R"({"type": "integer", "minimum": -5, "exclusiveMaximum": 120})",
       {"-5", "0", "119", "7.0"},
       {"-6", "120", "1.5", "1200"}},
      {R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1})",
       {"0.001", "1", "1.0", "1e-06", "5e-3"},
       {"0", "1.01", "-1", "2"}},
      {R"({"multipleOf": 0.01, "type": "number"})", {"19.99", "20", "0.1"}, {"0.001", "1.005"}},
      {R"({"type": "number", "not": {"type": "integer"}})", {"1.5", "0.1"}, {"1", "2.0"}},
      {R"({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 0, "exclusiveMinimum": true})",
       {"1"},
       {"0", "1.0"}},
      {R"({"enum": [1, 2.5]})", {"1", "1.0", "2.5"}, {"2", "10"}},
      {R"({"const": -23.296321319662194})", {"-23.296321319662194"}, {"-23.29632131966219"}},
      {R"({"const": 7.22013e-25})", {"0.000000000000000000000000722013"}, {"0.0000000000000000000000007220130000000001"}},
  });
}

// All integers from 114 to 126 have a prime factor of at most 11.
TEST(Schema, RunsOfUnwantedMultiplesAreLookedThrough) {
  const auto text = [](int primes, int low, int high) {
    constexpr int kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    std::string out = R"({"type": "integer", "minimum": )" + std::to_string(low) + R"(, "maximum": )" +
                      std::to_string(high) + R"(, "allOf": [)";
    for (int i = 0; i < primes; ++i)
      out += (i ? "," : "") + std::string(R"({"not": {"multipleOf": )") + std::to_string(kPrimes[i]) + "}}";
    return out + "]}";
  };
  const GrammarPtr grammar = schema(text(11, 2, 43));
  for (int n = 2; n < 44; ++n) EXPECT_EQ(takes(grammar, std::to_string(n)), n == 37 || n == 41 || n == 43) << n;
  EXPECT_FALSE(Grammar::from_json_schema(json(text(5, 114, 126))).ok());
  EXPECT_TRUE(Grammar::from_json_schema(json(text(5, 114, 127))).ok());
  const auto many = Grammar::from_json_schema(json(text(12, 2, 9700)));
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().subject, "/allOf/11/not/multipleOf") << many.error().message;
}

// 2^70 and its neighbours are one double: what may be beyond the bound isn't taken.
TEST(Schema, BoundsBeyond64BitsHoldOnTheSafeSide) {
  check_all({
      {R"({"maximum": 1180591620717411303423, "type": "integer"})",
       {"1180591620717411000000", "-5"},
       {"1180591620717411303424", "1180591620717411303425", "1180591620717412000000"}},
      {R"({"minimum": 1180591620717411303425, "type": "integer"})",
       {"1180591620717412000000", "99999999999999999999999999999999"},
       {"1180591620717411303424", "1180591620717411303423", "5"}},
      {R"({"exclusiveMinimum": -9223372036854775809, "type": "integer"})",
       {"-9223372036854770000"},
       {"-9223372036854775809", "-9223372036854775810"}},
      {R"({"maximum": 18446744073709551615, "type": "integer"})", {"18446744073709551615"}, {"18446744073709551616"}},
      {R"({"minimum": -1.7976931348623157e308, "maximum": 1.7976931348623157e308})", {"0", "1e99", "-1e99"}, {}},
  });
  EXPECT_FALSE(Grammar::from_json_schema(json(R"({"minimum": 1.7976931348623157e308, "type": "integer"})")).ok());
}

TEST(Schema, ObjectsInOrderAndInAnyOrder) {
  const Verdict ordered{
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "null"}}, "required": ["b"]})",
      {R"({"a": 1, "b": "x"})", R"({"b":"x","c":null,"d":[1]})", R"({"b": "x", "z": {}, "y": 1})"},
      {R"({"a": 1})", R"({"b": 1})", R"({"b": "x", "b": "y"})", R"({"b": "x", "z": 1, "z": 2})"}};
  check_all({ordered});
  EXPECT_FALSE(takes(schema(ordered.schema), R"({"b": "x", "a": 1})"));
  JsonSchemaOptions any;
  any.any_order = true;
  check_all({ordered}, any);
  EXPECT_TRUE(takes(schema(ordered.schema, any), R"({"z": 0, "b": "x", "a": 1})"));
}

TEST(Schema, KeysByPatternNameAndCount) {
  JsonSchemaOptions any;
  any.any_order = true;
  check_all(
      {
          {R"({"type": "object", "patternProperties": {"^x": {"type": "integer"}, "y$": {"minimum": 5}}, "additionalProperties": false})",
           {R"({"x": 1, "xy": 5})", "{}"},
           {R"({"xy": 4})", R"({"z": 1})"}},
          {R"({"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 1, "maxProperties": 2})",
           {R"({"a": 1, "bc": 2})"},
           {"{}", R"({"abc": 1})", R"({"a": 1, "b": 2, "c": 3})"}},
          {R"({"type": "object", "dependentRequired": {"a": ["b"]}, "additionalProperties": {"type": "integer"}})",
           {"{}", R"({"b": 1})", R"({"a": 1, "b": 2})", R"({"b": 1, "a": 2})"},
           {R"({"a": 1})"}},
          {R"({"type": "object", "properties": {"k": {"enum": [1, 2]}}, "required": ["k"], "if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["x"]}, "else": {"required": ["y"]}})",
           {R"({"k": 1, "x": 0})", R"({"y": 0, "k": 2})"},
           {R"({"k": 1, "y": 0})", R"({"k": 2})"}},
          {R"({"type": "object", "not": {"required": ["a", "b"]}})",
           {R"({"a": 1})", R"({"b": 1, "c": 2})"},
           {R"({"a": 1, "b": 2})"}},
          {R"({"type": "object", "not": {"additionalProperties": {"type": "string"}, "properties": {"a": {}}}})",
           {R"({"z": 1})", R"({"a": 1, "q": "s", "z": null})"},
           {"{}", R"({"a": 1, "z": "s"})"}},
          {R"({"type": "object", "properties": {"a": false}})", {"{}", R"({"b": 1})"}, {R"({"a": 1})"}},
      },
      any);
}

TEST(Schema, Arrays) {
  check_all({
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
       {"[]", "[1]", R"([1, "a"])"},
       {R"(["a"])", R"([1, "a", 2])"}},
      {R"({"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 3})",
       {R"(["a", 1, "b"])"},
       {R"(["a", 1])", R"(["a","b","c","d"])"}},
      {R"({"type": "array", "uniqueItems": true, "items": {"type": ["string", "integer"]}})",
       {R"([1, "1", "a"])"},
       {"[1, 1]", R"(["a", "a"])", R"(["\u0061", "a"])"}},
      {R"({"type": "array", "minItems": 2, "maxItems": 1000, "items": {"type": "boolean"}})",
       {"[true, false]"},
       {"[true]", "[]"}},
      {R"({"not": {"type": "array", "items": {"type": "integer"}}})", {R"([1, "a"])", "{}"}, {"[1]", "[]"}},
  });
}

TEST(Schema, Combinations) {
  JsonSchemaOptions any;
  any.any_order = true;
  check_all(
      {
          {R"({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 10}]})", {"3", "10.5"}, {"12", "3.5"}},
          {R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"})",
           {R"({"a": 1})", R"({"b": 1, "c": 1})"},
           {R"({"a": 1, "b": 1})", "{}"}},
          {R"({"allOf": [{"type": "object", "properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}]})",
           {R"({"a": 3})"},
           {R"({"a": 2})", R"({"a": 3.5})", "{}"}},
          {R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"]}}, "$ref": "#/$defs/node"})",
           {R"({"v": 1, "next": {"v": 2, "next": null}})"},
           {R"({"v": 1, "next": {"v": 2}})"}},
          {R"({"properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"oneOf": [{"type": "integer"},
               {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/t"}}},
               {"type": "object", "required": ["a", "b"], "properties": {"a": {"$ref": "#/$defs/t"}}}]}}})",
           {R"({"x": {"a": {"a": 1}}})", R"({"x": 1})"},
           {R"({"x": {"a": 1, "b": 1}})", R"({"x": {"a": {"a": 1, "b": 1}}})", R"({"x": {"b": 1}})"}},
          {R"({"const": {"a": [1, {"b": null}]}})",
           {R"({"a": [1, {"b": null}]})"},
           {R"({"a": [1]})", R"({"a": [1, {"b": null}], "c": 1})"}},
          {R"({"not": {"const": {"a": 1}}, "type": "object", "additionalProperties": {"type": "integer"}})",
           {"{}", R"({"a": 2})", R"({"a": 1, "b": 1})"},
           {R"({"a": 1})"}},
          {"true", {"1", "{}"}, {"x"}},
      },
      any);
}

TEST(Schema, WhiteSpaceIsBoundedByDefault) {
  const char* text = R"({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}})";
  const GrammarPtr bounded = schema(text), compact = schema(text, {.whitespace = Whitespace::compact}),
                   flexible = schema(text, {.whitespace = Whitespace::flexible});
  EXPECT_TRUE(takes(bounded, "{\n  \"a\": [\n    1,\n    2\n  ]\n}"));
  EXPECT_FALSE(takes(bounded, "{\n\n\"a\": []}"));
  EXPECT_FALSE(takes(bounded, "{  \"a\": []}"));
  EXPECT_TRUE(takes(compact, R"({"a":[1,2]})"));
  EXPECT_FALSE(takes(compact, R"({"a": [1]})"));
  EXPECT_TRUE(takes(flexible, "{ \n\n \"a\" \t:\r\n[1 , 2 ] }"));
}

TEST(Schema, RefusesByNameWithAPointer) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"properties": {"a": {"type": "string", "pattern": "(a)\\1"}}})", "/properties/a/pattern"},
      {R"({"properties": {"a/b": {"$ref": "http://other.example/x"}}})", "/properties/a~1b/$ref"},
      {R"({"type": "array", "items": {"type": "object"}, "uniqueItems": true})", "/uniqueItems"},
      {R"({"type": "wrong"})", "/type"},
      {R"({"format": "idn-email"})", "/format"},
      {R"({"$schema": "https://example.com/mine"})", "/$schema"},
      {R"({"minimum": "1"})", "/minimum"},
      {R"({"multipleOf": 36893488147419103232})", "/multipleOf"},
      {R"({"properties": {"a": {"enum": [1, 18446744073709551617]}}})", "/properties/a"},
      {R"({"anyOf": []})", "/anyOf"},
      {R"({"$ref": "#"})", "/$ref"},
      {R"({"unevaluatedProperties": false, "anyOf": [{"properties": {"a": {}}}]})", "/unevaluatedProperties"},
  };
  for (const auto& [text, pointer] : refused) {
    Result<GrammarPtr> grammar = Grammar::from_json_schema(json(text));
    ASSERT_FALSE(grammar.ok()) << text;
    EXPECT_EQ(grammar.error().subject, pointer) << grammar.error().message;
  }
  EXPECT_FALSE(Grammar::from_json_schema(json("false")).ok());
  EXPECT_FALSE(
      Grammar::from_json_schema(json(R"({"type": "object", "required": ["a"], "properties": {"a": false}})")).ok());
}

TEST(Schema, AFormatOfNoStandardIsAnAnnotation) {
  EXPECT_TRUE(takes(schema(R"({"type": "string", "format": "color"})"), R"("any")"));
  EXPECT_TRUE(takes(schema(R"({"type": "string", "format": "date"})", {.enforce_formats = false}), R"("any")"));
}

TEST(Schema, ManyMatchersShareWhatIsLearnt) {
  const GrammarPtr grammar = schema(R"({"type": "array", "items": {"type": "string"}})");
  std::string text = "[";
  for (int i = 0; i < 2000; ++i) text += "\"item\", ";
  EXPECT_TRUE(takes(grammar, text + "\"x\"]"));
  EXPECT_TRUE(takes(schema(R"({"type": "object"})"), R"({"a": {"b": [1, {"c": null}]}})"));
}

}  // namespace
}  // namespace unisono::grammar
