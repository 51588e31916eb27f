#include "grammar/regex.h"

#include <random>
#include <regex>

#include "bytes.h"
#include "grammar/regex_parser.h"

namespace unisono::grammar {
namespace {

bool matches(std::string_view pattern, std::string_view text, Match how = Match::anywhere) {
  RegexPool pool;
  Result<RegexId> language = parse_regex(pool, pattern, how);
  EXPECT_TRUE(language.ok()) << pattern << ": " << (language ? "" : language.error().message);
  return language && pool.matches(*language, text);
}

TEST(Regex, SearchesAnywhereUnlessAnchored) {
  EXPECT_TRUE(matches("b", "abc"));
  EXPECT_FALSE(matches("^b", "abc"));
  EXPECT_TRUE(matches("c$", "abc"));
  EXPECT_FALSE(matches("^a|b$", "cba"));
  EXPECT_TRUE(matches("^a|b$", "acc"));
  EXPECT_TRUE(matches("A|B|C:[0-9]*", "xxB"));
  EXPECT_FALSE(matches("abc", "abcd", Match::whole));
  EXPECT_TRUE(matches("^(?:a|(?:^b))$", "b"));
}

TEST(Regex, LookAheadSeesWhatFollows) {
  EXPECT_TRUE(matches("^(?=.*[0-9])(?=.*[a-z]).{3,5}$", "a1b"));
  EXPECT_FALSE(matches("^(?=.*[0-9])(?=.*[a-z]).{3,5}$", "abc"));
  EXPECT_TRUE(matches("^(?!foo)[a-z]+$", "fob"));
  EXPECT_FALSE(matches("^(?!foo)[a-z]+$", "food"));
  EXPECT_TRUE(matches("^a(?=b)(b|c)d$", "abd"));
  EXPECT_FALSE(matches("^a(?=b)(b|c)d$", "acd"));
}

TEST(Regex, CountsWithoutExpanding) {
  RegexPool pool;
  Result<RegexId> language = parse_regex(pool, "^(ab){1000,2000}$", Match::anywhere);
  ASSERT_TRUE(language.ok());
  EXPECT_LT(pool.size(), 100u);
  std::string text;
  for (int i = 0; i < 999; ++i) text += "ab";
  EXPECT_FALSE(pool.matches(*language, text));
  EXPECT_TRUE(pool.matches(*language, text + "ab"));
}

TEST(Regex, RefusesWhatItCannotDoByName) {
  RegexPool pool;
  for (const char* pattern :
       {"(a)\\1", "(?<=a)b", "\\bword", "a**", "(", "[z-a]", "a{3,1}", "\\p{Klingon}", "(?i)a", "[", "\\", "(^a)+"}) {
    Result<RegexId> language = parse_regex(pool, pattern, Match::anywhere);
    EXPECT_FALSE(language.ok()) << pattern;
    EXPECT_TRUE(language.ok() || language.error().message.find("pattern") != std::string::npos);
  }
}

TEST(Regex, UnicodeIsCharacters) {
  EXPECT_TRUE(matches("^.$", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(matches("^[\\u{1F600}-\\u{1F610}]$", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(matches("^\\uD83D\\uDE00$", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(matches("^\\p{L}+$", "\xC3\xA9t\xC3\xA9"));
  EXPECT_FALSE(matches("^\\d$", "\xD9\xA1"));  // an Arabic digit
}

// std::regex speaks ECMAScript too: an independent judge for what both understand.
TEST(Regex, AgreesWithTheStandardLibrary) {
  std::mt19937 random(7);
  auto pick = [&](int n) { return int(random() % unsigned(n)); };
  struct Make {
    decltype(pick)& choose;
    std::string run(int depth) {
      switch (choose(depth > 3 ? 3 : 8)) {
        case 0: return std::string(1, char('a' + choose(3)));
        case 1: return choose(2) ? "[ab]" : "[^a]";
        case 2: return ".";
        case 3: return run(depth + 1) + run(depth + 1);
        case 4: return "(?:" + run(depth + 1) + "|" + run(depth + 1) + ")";
        case 5: return "(?:" + run(depth + 1) + ")*";
        case 6: return "(?:" + run(depth + 1) + "){1,2}";
        default: return "(?:" + run(depth + 1) + ")?";
      }
    }
  };
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    std::string pattern = Make{pick}.run(0);
    if (pick(3) == 0) pattern = "^" + pattern;
    if (pick(3) == 0) pattern += "$";
    const std::regex judge(pattern, std::regex::ECMAScript);
    RegexPool pool;
    Result<RegexId> language = parse_regex(pool, pattern, Match::anywhere);
    ASSERT_TRUE(language.ok()) << pattern;
    const RegexId complement = pool.negate(*language);
    for (int n = 0; n < 40; ++n) {
      std::string text;
      for (int length = pick(7); length > 0; --length) text += char('a' + pick(4));
      const bool expected = std::regex_search(text, judge);
      EXPECT_EQ(pool.matches(*language, text), expected) << pattern << " on " << text;
      EXPECT_EQ(pool.matches(complement, text), !expected) << "not " << pattern << " on " << text;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 16000);
}

TEST(Regex, IntersectionAndEmptinessAreExact) {
  RegexPool pool;
  const RegexId a = *parse_regex(pool, "^[ab]*$", Match::anywhere), b = *parse_regex(pool, "^(..)*$", Match::anywhere);
  const RegexId c = *parse_regex(pool, "^.{3}$", Match::anywhere);
  EXPECT_TRUE(pool.alive(pool.both({a, b})));
  EXPECT_FALSE(pool.alive(pool.both({b, c})));
  EXPECT_EQ(pool.count(pool.both({a, c}), 1000), 8u);
  EXPECT_EQ(pool.count(a, 1000), 1000u);
}

}  // namespace
}  // namespace unisono::grammar
