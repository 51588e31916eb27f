#include "base/json.h"

#include <gtest/gtest.h>

namespace unisono {
namespace {

TEST(ParseJson, KeepsTheOrderOfKeys) {
  auto value = parse_json(R"( {"b": 1, "a": [true, null, -2.5, "\u00e9"]} )");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(to_text(*value), R"({"b":1,"a":[true,null,-2.5E0,"é"]})");
}

TEST(ParseJson, RefusesWhatTwoReadersReadDifferently) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1} x", "nul", "1e999", "[1e999]", "\"\xff\"", "\"\x01\"", "{\"a\":1,\"a\":2}",
                           "{\"x\":{\"ab\":1,\"a\\u0062\":2}}", "01", "'a'", "NaN", "// c\n1"}) {
    auto value = parse_json(text);
    EXPECT_FALSE(value.ok()) << text;
  }
  EXPECT_NE(parse_json(R"({"a":1,"a":2})").error().message.find("'a' stands twice"), std::string::npos);
}

TEST(ParseJson, TheSameKeyMayStandInDifferentObjects) {
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":2},{"b":{"a":{"a":3}}}])").ok());
}

TEST(ParseJson, LimitsDepth) {
  const std::string deep(60, '['), too_deep(100000, '[');
  EXPECT_TRUE(parse_json(deep + std::string(60, ']')).ok());
  EXPECT_FALSE(parse_json(too_deep).ok());
}

}  // namespace
}  // namespace unisono
