#include "grammar/number.h"

#include <gtest/gtest.h>

#include <random>

namespace unisono::grammar {
namespace {

Decimal decimal(const char* text) { return *Decimal::parse(text); }

TEST(Number, DecimalsAreExact) {
  EXPECT_TRUE(decimal("0.3").is_multiple_of(decimal("0.1")));
  EXPECT_TRUE(decimal("1e-2").compare(decimal("0.01")) == 0);
  EXPECT_EQ(decimal("-12.500").text(), "-12.5");
  EXPECT_EQ(decimal("5e3").text(), "5000");
  EXPECT_EQ(Decimal::of(0.1).text(), "0.1");
  EXPECT_EQ(decimal("0.005").text(), "0.005");
  for (const char* broken : {"", "-", "1.e", "x", "1e999", "0x1"})
    EXPECT_FALSE(Decimal::parse(broken).has_value()) << broken;
}

// Whatever beginning is alive can be completed, and what is complete is a member: walked at random.
TEST(Number, EveryWayThatBeginsEnds) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    NumberSet set;
    const Decimal low{int(random() % 2000) - 1000, int(random() % 3)}, high{low.digits + int(random() % 500), low.scale};
    if (random() % 3) set.at_least(low, random() % 2);
    if (random() % 3) set.at_most(high, random() % 2);
    if (random() % 3 == 0) set.integer();
    if (random() % 3 == 0) set.multiple_of({int(random() % 20) + 1, int(random() % 2)});
    if (random() % 4 == 0) set.not_multiple_of(Decimal::of(int64_t(random() % 5 + 2)));
    if (random() % 4 == 0) set.exclude(low);
    if (set.empty()) continue;
    for (int walk = 0; walk < 10; ++walk) {
      std::string text;
      for (int step = 0; step < 80; ++step) {
        std::string choices;
        for (char c : std::string_view("0123456789.-e")) {
          const bool digit = c >= '0' && c <= '9', after_digit = !text.empty() && text.back() >= '0' && text.back() <= '9';
          if (!digit && c == '-' && !text.empty() && text.back() != 'e') continue;
          if (c == '.' && (!after_digit || text.find_first_of(".e") != std::string::npos)) continue;
          if (c == 'e' && (!after_digit || text.find('e') != std::string::npos)) continue;
          if (set.alive(text + c)) choices += c;
        }
        if (set.complete(text)) {
          EXPECT_TRUE(set.contains(*Decimal::parse(text))) << text;
          if (choices.empty() || random() % 4 == 0) break;
        }
        ASSERT_FALSE(choices.empty()) << "no way on from " << text << " in " << set.key();
        text += choices[random() % choices.size()];
      }
    }
  }
}

TEST(Number, MembersAreReachable) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    NumberSet set;
    const int low = int(random() % 3000) - 1500, high = low + int(random() % 300);
    set.at_least(Decimal::of(int64_t(low)), false);
    set.at_most(Decimal::of(int64_t(high)), false);
    for (int n = 0; n < 20; ++n) {
      const Decimal value{low * 100 + int(random() % unsigned((high - low) * 100 + 1)), 2};
      const std::string text = value.text();
      for (size_t i = 1; i <= text.size(); ++i) EXPECT_TRUE(set.alive(text.substr(0, i))) << text << " in " << set.key();
      EXPECT_TRUE(set.complete(text));
    }
  }
}

}  // namespace
}  // namespace unisono::grammar
