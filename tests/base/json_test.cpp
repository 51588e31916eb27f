#include "base/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>

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

TEST(ParseJson, ReadsTheNearestDouble) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100'000; ++i) {
    const double wanted = std::bit_cast<double>(random());
    if (!std::isfinite(wanted)) continue;
    char text[64];
    *std::to_chars(text, text + sizeof text - 1, wanted).ptr = 0;
    const auto value = parse_json(std::string(text) + " ");
    ASSERT_TRUE(value.ok()) << text;
    if (value->is_double()) {
      ASSERT_EQ(value->get_double(), wanted) << text;
    }
  }
  EXPECT_EQ(parse_json("-23.296321319662194")->get_double(), -23.296321319662194);
  EXPECT_EQ(parse_json("[1.5, 2e-999, 3.25]")->get_array()[1].get_double(), 0);
  EXPECT_EQ(parse_json("1.7976931348623157e308")->get_double(), 1.7976931348623157e308);
  EXPECT_FALSE(parse_json("1.7976931348623159e308").ok());
  EXPECT_FALSE(parse_json("-1e400").ok());
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
