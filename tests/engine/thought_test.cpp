// Thoughts of a limited length: they take no more tokens than they may, and what comes before is what came without a limit.
#include <gtest/gtest.h>

#include "engine/collector.h"
#include "engine/thought_watch.h"
#include "engine/tiny_world.h"
#include "grammar/grammar.h"
#include "text/detokenizer.h"

namespace unisono::engine {
namespace {

// The tokens that a watch lets through of what a model would say, with what it puts there itself.
struct Watched {
  std::string text{};
  int own = 0;  // of the model
};
Watched watched(const ThoughtBudget& budget, std::string_view model_says, const text::Tokenizer& tokenizer) {
  ThoughtWatch watch(budget, tokenizer);
  Watched out;
  for (size_t i = 0; i < model_says.size();) {
    const auto due = watch.due();
    const TokenId token = due ? *due : kFirstByte + static_cast<unsigned char>(model_says[i++]);
    out.own += due ? 0 : 1;
    watch.push(token);
    out.text += tokenizer.bytes(token, true);
  }
  return out;
}

TEST(ThoughtWatch, EndsThoughtsThatAreTooLong) {
  const TinyTokenizer tokenizer;
  const auto said = [&](const ThoughtBudget& budget, std::string_view says) {
    return watched(budget, says, tokenizer.get()).text;
  };
  ThoughtBudget open{.begin = "<t>", .end = "</t>", .max_tokens = 4, .open = true};
  // How this tokenizer begins a text is its own affair.
  const std::string end = text::detokenize(tokenizer.get(), tokenizer.get().encode("</t>", false, true), true, false);
  EXPECT_EQ(said(open, "abcdefgh"), "abcd" + end + "efgh");
  EXPECT_EQ(said(open, "abc</t>cdefgh").substr(0, 4 + end.size()), "abc<" + end) << "an end half written is written anew";
  open.max_tokens = 6;
  EXPECT_EQ(said(open, "ab</t>cdefgh"), "ab</t>cdefgh") << "it ended of itself";
  open.max_tokens = 0;
  EXPECT_EQ(said(open, "abc"), end + "abc");
  ThoughtBudget maybe{.begin = "<t>", .end = "</t>", .max_tokens = 2};
  EXPECT_EQ(said(maybe, " \n<t>abcd"), " \n<t>ab" + end + "cd");
  EXPECT_EQ(said(maybe, "x<t>abcd"), "x<t>abcd") << "thoughts only begin an answer";
  maybe.max_tokens = 6;
  EXPECT_EQ(said(maybe, "<t>a</t>b<t>cdef"), "<t>a</t>b<t>cdef");
  maybe.again = true;
  EXPECT_EQ(said(maybe, "<t>a</t>b<t>cdef"), "<t>a</t>b<t>c" + end + "def") << "all of them together";
  maybe.max_tokens = 2;
  EXPECT_EQ(said(maybe, "<t>abc<t>def"), "<t>ab" + end + "c<t>" + end + "def");
  EXPECT_EQ(said(maybe, "<t>a\u65e5bc"), "<t>a\u65e5" + end + "bc") << "no half characters";
}

// As of models whose embedding has more rows than their vocabulary.
TEST(ThoughtWatch, CountsTokensThatTheVocabularyLacks) {
  const TinyTokenizer tokenizer;
  ThoughtWatch watch({.begin = "<t>", .end = "</t>", .max_tokens = 3, .open = true}, tokenizer.get());
  for (const TokenId beyond : {0, 1, 1 << 24}) {
    EXPECT_EQ(watch.due(), std::nullopt);
    watch.push(tokenizer.get().vocab_size() + beyond);
  }
  EXPECT_NE(watch.due(), std::nullopt);
}

Request thinking(const TinyWorld& world, int budget, uint64_t seed) {
  Request r{.prompt = world.tokenizer.get().encode("on the", true, false), .max_tokens = 40};
  r.thoughts = ThoughtBudget{.begin = "<t>", .end = "the end.", .max_tokens = budget, .open = true};
  r.sampling.seed = seed;
  r.sampling.temperature = 1.2f;
  r.logprobs = true;
  r.ignore_eos = true;
  return r;
}

std::vector<TokenId> ids_of(const Collector& collector) {
  std::vector<TokenId> ids;
  for (const TokenResult& token : collector.tokens()) ids.push_back(token.id);
  return ids;
}

TEST(Thoughts, AreCutAtTheirBudgetAndNotBefore) {
  TinyWorld world(2);
  const std::vector<TokenId> end = world.tokenizer.get().encode("the end.", false, true);
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
  for (uint64_t seed = 0; seed < 8; seed++) {
    Request free = thinking(world, 0, seed);
    free.thoughts.reset();
    const Sent unlimited = send(engine, std::move(free)), sent = send(engine, thinking(world, 7, seed));
    unlimited.collector->wait();
    sent.collector->wait();
    const auto without = ids_of(*unlimited.collector), with = ids_of(*sent.collector);
    ASSERT_EQ(with.size(), 40u);
    ASSERT_TRUE(std::equal(with.begin(), with.begin() + 7, without.begin()));
    size_t begin = 7;  // or a token later, for a character's sake
    while (begin < 11 && with[begin] != end[0]) begin++;
    ASSERT_LT(begin, 11u);
    EXPECT_TRUE(std::equal(end.begin(), end.end(), with.begin() + static_cast<int64_t>(begin)));
  }
  engine.audit();
}

TEST(Thoughts, EndWhereTheyDoAloneWhenManyArePreempted) {
  TinyWorld world(2);
  std::vector<std::string> alone;
  {
    Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
    for (uint64_t seed = 0; seed < 8; seed++) {
      const Sent sent = send(engine, thinking(world, static_cast<int>(seed) * 3, seed));
      sent.collector->wait();
      alone.push_back(sent.collector->record());
    }
  }
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.n_blocks = 8, .token_budget = 16, .end_tokens = {kEos}});
  std::vector<Sent> sent;
  for (uint64_t seed = 0; seed < 8; seed++) sent.push_back(send(engine, thinking(world, static_cast<int>(seed) * 3, seed)));
  for (size_t i = 0; i < sent.size(); i++) {
    sent[i].collector->wait();
    EXPECT_EQ(sent[i].collector->record(), alone[i]);
  }
  EXPECT_GT(engine.state().preemptions, 0u);
  engine.audit();
}

TEST(Thoughts, EndWithinAConstraintToo) {
  TinyWorld world(2);
  std::vector<grammar::TokenId> controls;
  for (int32_t id = 0; id < world.tokenizer.get().vocab_size(); id++)
    if (world.tokenizer.get().is_control(id) && id != kEos) controls.push_back(id);
  const auto trie = grammar::TokenTrie::build(world.tokenizer.get().vocabulary(), {kEos}, controls);
  auto grammar = grammar::Grammar::from_shape(
      grammar::Shape::sequence({grammar::Shape::until("the end.", {}), grammar::Shape::one_of({"on", "an"})}));
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.end_tokens = {kEos}});
  for (uint64_t seed = 0; seed < 20; seed++) {
    Request request = thinking(world, static_cast<int>(seed % 5), seed);
    request.constraint = grammar::Matcher(*grammar, trie);
    const Sent sent = send(engine, std::move(request));
    sent.collector->wait();
    EXPECT_EQ(*sent.collector->last().finish, FinishReason::complete) << sent.collector->text();
    const std::string text = sent.collector->text();
    EXPECT_TRUE(text.ends_with("the end.on") || text.ends_with("the end.an")) << text;
  }
  engine.audit();
}

}  // namespace
}  // namespace unisono::engine
