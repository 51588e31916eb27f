#include "engine/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

const TinyTokenizer& tokenizer() {
  static const TinyTokenizer made;
  return made;
}

struct Answer {
  std::string text{};
  std::optional<FinishReason> finish{};
  std::string detail{};
  size_t used = 0;
};

Answer run(const Request& request, const std::vector<TokenId>& tokens, int max_context = 1000) {
  const std::vector<TokenId> ends{kEos};
  Output output(request, tokenizer().get(), ends, max_context);
  Answer answer;
  for (const TokenId token : tokens) {
    Delta delta;
    output.push(token, delta);
    answer.text += delta.text;
    answer.used++;
    answer.finish = delta.finish;
    answer.detail = delta.stop_detail;
    if (delta.finish) break;
  }
  return answer;
}

std::vector<TokenId> ids(std::string_view text) {
  std::vector<TokenId> out;
  for (const char c : text) out.push_back(kFirstByte + static_cast<unsigned char>(c));
  return out;
}

TEST(Output, EndTokens) {
  auto tokens = ids("ab");
  tokens.push_back(kEos);
  auto answer = run({.prompt = {kFirstPiece}, .max_tokens = 10}, tokens);
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.finish, FinishReason::stop_token);
  EXPECT_EQ(answer.detail, "</s>");
  answer = run({.prompt = {kFirstPiece}, .max_tokens = 10, .ignore_eos = true}, tokens);
  EXPECT_EQ(answer.finish, std::nullopt);
  answer = run({.prompt = {kFirstPiece}, .max_tokens = 10, .stop_tokens = {ids("b")[0]}, .ignore_eos = true}, tokens);
  EXPECT_EQ(answer.text, "a");
  EXPECT_EQ(answer.finish, FinishReason::stop_token);
  EXPECT_EQ(answer.detail, "b");
}

TEST(Output, LengthAndContext) {
  auto answer = run({.prompt = {kFirstPiece}, .max_tokens = 3}, ids("abcdef"));
  EXPECT_EQ(answer.text, "abc");
  EXPECT_EQ(answer.finish, FinishReason::length);
  answer = run({.prompt = {kFirstPiece, kFirstPiece}, .max_tokens = 100}, ids("abcdef"), 6);
  EXPECT_EQ(answer.text, "abcd");
  EXPECT_EQ(answer.finish, FinishReason::context);
}

TEST(Output, WhatIsHeldBackIsSentWhenTheAnswerEnds) {
  auto answer = run({.prompt = {kFirstPiece}, .max_tokens = 3, .stop = {"bcd"}}, ids("abcdef"));
  EXPECT_EQ(answer.text, "abc");
  EXPECT_EQ(answer.finish, FinishReason::length);
  // An incomplete character at the end.
  answer = run({.prompt = {kFirstPiece}, .max_tokens = 2}, ids("a\xC3\xA9"));
  EXPECT_EQ(answer.text, "a\uFFFD");
}

TEST(Output, AStopStringCutsBeforeItself) {
  auto answer = run({.prompt = {kFirstPiece}, .max_tokens = 10, .stop = {"x", "cd"}}, ids("abcdef"));
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.finish, FinishReason::stop_string);
  EXPECT_EQ(answer.detail, "cd");
  EXPECT_EQ(answer.used, 4u);
  // Inside multi-byte characters: "é" is two tokens here.
  answer = run({.prompt = {kFirstPiece}, .max_tokens = 10, .stop = {"\u00e9"}}, ids("a\u00e8\u00e9b"));
  EXPECT_EQ(answer.text, "a\u00e8");
  EXPECT_EQ(answer.used, 5u);
  // The last token allowed completes a stop string: that is how it ended.
  answer = run({.prompt = {kFirstPiece}, .max_tokens = 3, .stop = {"bc"}}, ids("abc"));
  EXPECT_EQ(answer.finish, FinishReason::stop_string);
}

TEST(Output, EndTokensAreBannedBeforeMinTokens) {
  const Request request{.prompt = {kFirstPiece}, .max_tokens = 10, .stop_tokens = {7}, .min_tokens = 2};
  const std::vector<TokenId> ends{kEos};
  Output output(request, tokenizer().get(), ends, 100);
  const auto banned = [&] { return std::vector<TokenId>(output.banned().begin(), output.banned().end()); };
  EXPECT_EQ(banned(), (std::vector<TokenId>{kEos, 7}));
  Delta delta;
  output.push(50, delta);
  EXPECT_EQ(banned().size(), 2u);
  output.push(50, delta);
  EXPECT_TRUE(output.banned().empty());
}

// Random tokens and stop strings against the whole text, detokenized again after every token.
TEST(Output, DeltasJoinToTheWholeText) {
  std::mt19937 rng(3);
  int stopped = 0;
  for (int round = 0; round < 3000; round++) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 30; i++)
      tokens.push_back(rng() % 3 ? kFirstPiece + static_cast<TokenId>(rng() % 24)
                                 : kFirstByte + static_cast<TokenId>(rng() % 2 ? 0x80 + rng() % 0x80 : 0x61 + rng() % 4));
    Request request{.prompt = {kFirstPiece}, .max_tokens = 1 + static_cast<int>(rng() % 40)};
    for (size_t n = rng() % 3; n-- > 0;) {
      // A stretch of what the tokens say, at times with another end, so that it nearly comes.
      const auto at = static_cast<ptrdiff_t>(rng() % 26);
      std::vector<TokenId> some(tokens.begin() + at, tokens.begin() + at + 1 + static_cast<ptrdiff_t>(rng() % 4));
      if (rng() % 3 == 0) some.push_back(kFirstPiece + static_cast<TokenId>(rng() % 24));
      request.stop.push_back(text::detokenize(tokenizer().get(), some, false, false));
    }
    // The truth: after each token, everything that is certain by then; at the end, all of it.
    std::string whole;
    std::optional<FinishReason> finish;
    size_t used = 0;
    text::Detokenizer detokenizer(tokenizer().get());
    const auto cut = [&] {
      size_t at = std::string::npos;
      for (const std::string& stop : request.stop) at = std::min(at, whole.find(stop));
      if (at == std::string::npos) return;
      whole.resize(at);
      finish = FinishReason::stop_string;
    };
    while (used < tokens.size() && !finish) {
      whole += detokenizer.push(tokens[used++]);
      cut();
      if (finish || static_cast<int>(used) < request.max_tokens) continue;
      finish = FinishReason::length;
      whole += detokenizer.finish();
      cut();
    }
    const Answer answer = run(request, tokens);
    ASSERT_EQ(answer.finish, finish);
    ASSERT_EQ(answer.used, used);
    if (finish) {
      ASSERT_EQ(answer.text, whole);
    } else {
      ASSERT_TRUE(whole.starts_with(answer.text));
    }
    stopped += finish == FinishReason::stop_string;
  }
  EXPECT_GT(stopped, 200);
}

TEST(Output, AnAnswerToControlTokensBeginsAText) {
  const std::vector<TokenId> word = tokenizer().get().encode("the", false, false);
  ASSERT_EQ(word.size(), 1u);
  const TokenId the = word[0];
  EXPECT_EQ(run({.prompt = {kBos}, .max_tokens = 2}, {the, the}).text, "the the");
  EXPECT_EQ(run({.prompt = {kBos, kFirstPiece}, .max_tokens = 2}, {the, the}).text, " the the");
}

TEST(Output, CancellingSendsWhatWasHeldBack) {
  const Request request{.prompt = {kFirstPiece}, .max_tokens = 10, .stop = {"bcd"}};
  Output output(request, tokenizer().get(), {}, 100);
  Delta delta;
  for (const TokenId token : ids("abc")) output.push(token, delta);
  EXPECT_EQ(delta.text, "a");
  output.end(FinishReason::cancelled, delta);
  EXPECT_EQ(delta.text, "abc");
  EXPECT_EQ(delta.finish, FinishReason::cancelled);
}

}  // namespace
}  // namespace unisono::engine
