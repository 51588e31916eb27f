// Constrained answers: whatever the model would say, what comes out belongs to the constraint, and free requests beside it
// don't notice.
#include <gtest/gtest.h>

#include <regex>

#include "base/json.h"
#include "engine/collector.h"
#include "engine/tiny_world.h"
#include "grammar/grammar.h"

namespace unisono::engine {
namespace {

std::shared_ptr<const grammar::TokenTrie> trie_of(const text::Tokenizer& tokenizer) {
  std::vector<grammar::TokenId> controls;
  for (int32_t id = 0; id < tokenizer.vocab_size(); id++)
    if (tokenizer.is_control(id) && id != kEos) controls.push_back(id);
  return grammar::TokenTrie::build(tokenizer.vocabulary(), {kEos}, controls);
}

Request constrained(const TinyWorld& world, const grammar::Matcher& matcher, uint64_t seed, int max_tokens) {
  Request r{.prompt = world.tokenizer.get().encode("on the", true, false), .constraint = matcher, .max_tokens = max_tokens};
  r.sampling.temperature = 1.5f;
  r.sampling.seed = seed;
  r.logprobs = true;
  return r;
}

TEST(Constraint, AnswersMatchARegexOrAreCutByLength) {
  TinyWorld world(2);
  const auto trie = trie_of(world.tokenizer.get());
  auto grammar = grammar::Grammar::from_regex("^[a-c]{2,6}-(the|on|an)+\\.$");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  const grammar::Matcher matcher(*grammar, trie);
  const std::regex truth("[a-c]{2,6}-(the|on|an)+\\.");
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
  int whole = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    const Sent sent = send(engine, constrained(world, matcher, seed, 40));
    sent.collector->wait();
    const auto finish = *sent.collector->last().finish;
    ASSERT_TRUE(finish == FinishReason::complete || finish == FinishReason::stop_token || finish == FinishReason::length);
    if (finish == FinishReason::length) continue;
    whole++;
    EXPECT_TRUE(std::regex_match(sent.collector->text(), truth)) << sent.collector->text();
  }
  EXPECT_GT(whole, 20);
  engine.audit();
}

TEST(Constraint, JsonAnswersParse) {
  TinyWorld world(1);
  const auto trie = trie_of(world.tokenizer.get());
  auto grammar = grammar::Grammar::from_json_schema(*parse_json(
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99},"b":{"enum":["on","the"]}},"required":["a","b"],"additionalProperties":false})"));
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  const grammar::Matcher matcher(*grammar, trie);
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
  for (uint64_t seed = 0; seed < 20; seed++) {
    const Sent sent = send(engine, constrained(world, matcher, seed, 200));
    sent.collector->wait();
    if (*sent.collector->last().finish == FinishReason::length) continue;
    const auto json = parse_json(sent.collector->text());
    ASSERT_TRUE(json.ok()) << sent.collector->text();
    EXPECT_LE(json->at("a").to_number<double>(), 99);
    EXPECT_TRUE(json->at("b").as_string() == "on" || json->at("b").as_string() == "the");
  }
}

// Where the constraint has nothing more, the answer is complete, though min_tokens bans the end token; where it has only what
// the request itself bans, the request is at fault.
TEST(Constraint, MinTokensCantBeReachedPastItsEnd) {
  TinyWorld world(2);
  const auto trie = trie_of(world.tokenizer.get());
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
  const auto last = [&](const char* pattern, std::vector<TokenId> stop_tokens) {
    auto grammar = grammar::Grammar::from_regex(pattern);
    Request request = constrained(world, grammar::Matcher(*grammar, trie), 1, 40);
    request.min_tokens = 30;
    request.stop_tokens = std::move(stop_tokens);
    const Sent sent = send(engine, std::move(request));
    sent.collector->wait();
    return std::pair(*sent.collector->last().finish, sent.collector->last().error.subject);
  };
  std::vector<TokenId> all;
  for (TokenId id = 0; id < world.hparams.vocab_size; id++) all.push_back(id);
  EXPECT_EQ(last("^$", {}), std::pair(FinishReason::complete, std::string()));
  EXPECT_EQ(last("^(the)?$", {}), std::pair(FinishReason::complete, std::string()));
  EXPECT_EQ(last("^the$", all), std::pair(FinishReason::error, std::string("min_tokens")));
  engine.audit();
}

TEST(Constraint, FreeNeighboursKeepTheirBits) {
  TinyWorld world(2);
  const auto trie = trie_of(world.tokenizer.get());
  auto grammar = grammar::Grammar::from_choices({"on the", "an", "the end"});
  ASSERT_TRUE(grammar.ok());
  const grammar::Matcher matcher(*grammar, trie);
  const auto free_request = [&] {
    Request r{.prompt = world.tokenizer.get().encode("the", true, false), .max_tokens = 30};
    r.sampling.seed = 5;
    r.logprobs = true;
    return r;
  };
  std::string alone, beside;
  {
    Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
    const Sent sent = send(engine, free_request());
    sent.collector->wait();
    alone = sent.collector->record();
  }
  {
    Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
    std::vector<Sent> others;
    for (uint64_t seed = 0; seed < 8; seed++) others.push_back(send(engine, constrained(world, matcher, seed, 20)));
    const Sent sent = send(engine, free_request());
    sent.collector->wait();
    beside = sent.collector->record();
    for (const Sent& other : others) {
      other.collector->wait();
      const std::string text = other.collector->text();
      EXPECT_TRUE(text == "on the" || text == "an" || text == "the end") << text;
    }
  }
  EXPECT_EQ(alone, beside);
}

}  // namespace
}  // namespace unisono::engine
