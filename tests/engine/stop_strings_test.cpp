#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace unisono::engine {
namespace {

// What must have been sent after each piece, by looking at the whole text again every time.
struct Expected {
  std::string sent;
  std::optional<size_t> match;
};
Expected brute_force(const std::string& text, const std::vector<std::string>& stops) {
  size_t start = std::string::npos;
  std::optional<size_t> match;
  for (size_t s = 0; s < stops.size(); s++) {
    const size_t at = text.find(stops[s]);
    if (at != std::string::npos && (start == std::string::npos || at < start)) {
      start = at;
      match = s;
    }
  }
  if (match) return {text.substr(0, start), match};
  size_t held = 0;
  for (const std::string& stop : stops)
    for (size_t n = 1; n < stop.size() && n <= text.size(); n++)
      if (text.ends_with(std::string_view(stop).substr(0, n))) held = std::max(held, n);
  return {text.substr(0, text.size() - held), {}};
}

TEST(StopStrings, EqualBruteForceAfterEveryPiece) {
  std::mt19937 rng(1);
  int matches = 0;
  for (int round = 0; round < 20000; round++) {
    const auto random_text = [&](size_t longest) {
      std::string text(1 + rng() % longest, 'a');
      for (char& c : text) c = static_cast<char>('a' + rng() % 2);
      return text;
    };
    std::vector<std::string> stops;
    for (size_t n = rng() % 4; n-- > 0;) stops.push_back(random_text(7));
    StopStrings matcher(stops);
    std::string text, sent;
    bool matched = false;
    for (int piece = 0; piece < 12 && !matched; piece++) {
      const std::string next = rng() % 5 ? random_text(4) : "";
      text += next;
      const auto match = matcher.push(next, sent);
      const Expected expected = brute_force(text, stops);
      ASSERT_EQ(match, expected.match) << text;
      ASSERT_EQ(sent, expected.sent) << text;
      matched = match.has_value();
    }
    matches += matched;
    matcher.finish(sent);
    if (!matched) {
      ASSERT_EQ(sent, text);
    }
  }
  EXPECT_GT(matches, 5000);
}

TEST(StopStrings, TheEarliestStartWins) {
  const std::vector<std::string> stops{"cd", "bcde"};
  StopStrings matcher(stops);
  std::string sent;
  EXPECT_EQ(matcher.push("abcdef", sent), 1u);
  EXPECT_EQ(sent, "a");
}

TEST(StopStrings, ALongStringCostsLinearTime) {
  const std::vector<std::string> stops{std::string(100000, 'a') + "b"};
  StopStrings matcher(stops);
  std::string sent;
  for (int i = 0; i < 3000; i++) EXPECT_FALSE(matcher.push(std::string(100, 'a'), sent));
  EXPECT_EQ(sent.size(), 300000u - 100000u);
}

}  // namespace
}  // namespace unisono::engine
