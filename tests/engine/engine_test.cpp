#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "engine/collector.h"
#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

constexpr int kContext = 96;

TinyWorld& world(int n_threads) {
  static TinyWorld one(1), two(2), three(3);
  return n_threads == 1 ? one : n_threads == 2 ? two : three;
}

EngineOptions options(int n_blocks, int token_budget = 512, int max_running = 64) {
  return {.max_context = kContext,
          .n_blocks = n_blocks,
          .token_budget = token_budget,
          .max_running = max_running,
          .end_tokens = {kEos}};
}

std::unique_ptr<Engine> make_engine(TinyWorld& w, const EngineOptions& o) {
  return std::make_unique<Engine>(*w.model, w.tokenizer.get(), w.team, o);
}

std::vector<TokenId> random_prompt(std::mt19937& rng, int n) {
  std::vector<TokenId> prompt{kBos};
  while (static_cast<int>(prompt.size()) < n) prompt.push_back(static_cast<TokenId>(3 + rng() % 285));
  return prompt;
}

// Holds the engine inside a step of its own until opened: what is sent meanwhile comes in together.
class Gate {
 public:
  explicit Gate(Engine& engine) {
    Request request{.prompt = {kBos}, .max_tokens = 1, .logprobs = true};
    request.on_delta = [this](Delta&&) {
      entered_.set_value();
      open_.get_future().wait();
    };
    EXPECT_TRUE(engine.submit(std::move(request)).ok());
    entered_.get_future().wait();
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_{}, open_{};
};

// Short and long, greedy and sampled, with every rule that a request can bring.
std::vector<Request> random_requests(unsigned seed, int n) {
  std::mt19937 rng(seed);
  std::vector<Request> requests;
  for (int i = 0; i < n; i++) {
    Request r{.prompt = random_prompt(rng, 1 + static_cast<int>(rng() % 70)),
              .max_tokens = 1 + static_cast<int>(rng() % 40)};
    r.sampling = {.temperature = rng() % 3 ? 0.5f + static_cast<float>(rng() % 10) / 10 : 0.0f, .seed = rng()};
    if (rng() % 3 == 0) r.sampling.top_k = 20;
    if (rng() % 3 == 0) r.sampling.top_p = 0.9f;
    if (rng() % 4 == 0) r.sampling.repetition_penalty = 1.2f;
    if (rng() % 4 == 0) r.sampling.frequency_penalty = 0.3f;
    if (rng() % 4 == 0) r.sampling.logit_bias = {{5, 3.0f}, {260, -2.0f}};
    if (rng() % 3 == 0) r.stop = {"e", "\u65e5\u672c", "the a"};
    if (rng() % 3 == 0) r.min_tokens = std::min(r.max_tokens, 5);
    if (rng() % 4 == 0) r.ignore_eos = true;
    if (rng() % 4 == 0) r.stop_tokens = {260, 270, 280, 60, 61, 62, 63};
    r.logprobs = rng() % 4 != 0;
    if (r.logprobs) r.top_logprobs = static_cast<int>(rng() % 4);
    r.prompt_logprobs = rng() % 3 == 0;
    requests.push_back(std::move(r));
  }
  return requests;
}

const std::vector<std::string>& alone(const std::vector<Request>& requests) {
  static const std::vector<std::string> records = [&] {
    std::vector<std::string> out;
    const auto engine = make_engine(world(1), options(64));
    for (const Request& request : requests) {
      const Sent sent = send(*engine, request);
      sent.collector->wait();
      out.push_back(sent.collector->record());
    }
    expect_idle(*engine);
    return out;
  }();
  return records;
}

struct Load {
  int n_threads, n_blocks, token_budget, max_running;
};

class UnderLoad : public ::testing::TestWithParam<Load> {};

TEST_P(UnderLoad, EachAnswerIsAsIfAlone) {
  const Load load = GetParam();
  const auto requests = random_requests(1, 40);
  const auto& truth = alone(requests);
  const auto engine = make_engine(world(load.n_threads), options(load.n_blocks, load.token_budget, load.max_running));
  std::mt19937 rng(static_cast<unsigned>(load.token_budget));
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::shuffle(order.begin(), order.end(), rng);
  std::vector<Sent> sent(requests.size()), strangers;
  for (const size_t i : order) {
    sent[i] = send(*engine, requests[i]);
    // Strangers come, and some are cancelled at any time.
    strangers.push_back(send(*engine, {.prompt = random_prompt(rng, 30), .sampling = {.seed = rng()}, .max_tokens = 30}));
    if (rng() % 2) engine->cancel(strangers[rng() % strangers.size()].id);
    if (rng() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 2000));
  }
  for (const Sent& stranger : strangers)
    if (rng() % 2) engine->cancel(stranger.id);
  for (size_t i = 0; i < sent.size(); i++) {
    sent[i].collector->wait();
    EXPECT_EQ(sent[i].collector->record(), truth[i]) << "request " << i;
  }
  for (const Sent& stranger : strangers) stranger.collector->wait();
  expect_idle(*engine);
}

INSTANTIATE_TEST_SUITE_P(Loads, UnderLoad,
                         ::testing::Values(Load{1, 200, 512, 64}, Load{1, 16, 64, 16}, Load{2, 9, 16, 8},
                                           Load{2, 300, 7, 64}, Load{3, 12, 33, 12}, Load{1, 6, 1, 1}),
                         [](const auto& info) {
                           const Load& l = info.param;
                           return std::to_string(l.n_threads) + "threads_" + std::to_string(l.n_blocks) + "blocks_budget" +
                                  std::to_string(l.token_budget) + "_running" + std::to_string(l.max_running);
                         });

TEST(Engine, TheRequestsExerciseTheRules) {
  int stop_tokens = 0, stop_strings = 0, lengths = 0;
  for (const std::string& record : alone(random_requests(1, 40))) {
    const char finish = record[record.find('|') + 1];
    stop_tokens += finish == '0';
    stop_strings += finish == '1';
    lengths += finish == '2';
  }
  EXPECT_GT(stop_strings, 0);
  EXPECT_GT(lengths, 0);
  EXPECT_GT(stop_tokens, 0);
}

TEST(Engine, PreemptionChangesNothing) {
  // Four answers that each grow to 6 blocks, in a pool of 9.
  std::vector<Request> requests;
  std::mt19937 rng(6);
  for (int i = 0; i < 4; i++) {
    Request r{.prompt = random_prompt(rng, 20), .max_tokens = 70, .ignore_eos = true, .logprobs = true, .top_logprobs = 2};
    r.sampling.seed = rng();
    r.sampling.repetition_penalty = 1.1f;
    r.prompt_logprobs = i % 2 == 0;
    requests.push_back(std::move(r));
  }
  std::vector<std::string> truth;
  for (const Request& r : requests) {
    const auto engine = make_engine(world(1), options(100));
    const Sent sent = send(*engine, r);
    sent.collector->wait();
    truth.push_back(sent.collector->record());
    EXPECT_EQ(engine->state().preemptions, 0u);
  }
  for (const int budget : {4, 32, 512}) {
    const auto engine = make_engine(world(2), options(9, budget));
    Gate gate(*engine);
    std::vector<Sent> sent;
    for (const Request& r : requests) sent.push_back(send(*engine, r));
    gate.open();
    for (size_t i = 0; i < sent.size(); i++) {
      sent[i].collector->wait();
      EXPECT_EQ(sent[i].collector->record(), truth[i]) << "budget " << budget << " request " << i;
    }
    EXPECT_GT(engine->state().preemptions, 0u);
    expect_idle(*engine);
  }
}

TEST(Engine, TheStateKnowsWhoIsInTheStepThatRuns) {
  const auto engine = make_engine(world(1), options(100));
  std::mt19937 rng(1);
  std::promise<void> first, looked, ended;
  bool told = false;
  Request request{.prompt = random_prompt(rng, 20), .max_tokens = 2, .ignore_eos = true};
  request.on_delta = [&](Delta&& delta) {
    if (!std::exchange(told, true)) {
      first.set_value();
      looked.get_future().wait();
    }
    if (delta.finish) ended.set_value();
  };
  ASSERT_TRUE(engine->submit(std::move(request)).ok());
  first.get_future().wait();  // the first step hasn't come to its end
  const EngineState during = engine->state();
  EXPECT_EQ(during.running, 1);
  EXPECT_EQ(during.waiting, 0);
  EXPECT_EQ(during.blocks_free, during.blocks_total - 2);
  looked.set_value();
  ended.get_future().wait();
  expect_idle(*engine);
}

TEST(Engine, EndsAtTheContext) {
  const auto engine = make_engine(world(1), options(100));
  std::mt19937 rng(1);
  const Sent sent =
      send(*engine, {.prompt = random_prompt(rng, 90), .max_tokens = 50, .ignore_eos = true, .logprobs = true});
  sent.collector->wait();
  EXPECT_EQ(sent.collector->last().finish, FinishReason::context);
  EXPECT_EQ(sent.collector->tokens().size(), 6u);
  EXPECT_EQ(sent.collector->last().usage.prompt_tokens, 90);
  EXPECT_EQ(sent.collector->last().usage.completion_tokens, 6);
}

TEST(Engine, TheContextIsNoLargerThanThePool) {
  const auto engine = make_engine(world(1), options(2));
  EXPECT_EQ(engine->max_context(), 32);
  std::mt19937 rng(1);
  const auto refused = engine->submit({.prompt = random_prompt(rng, 32)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().subject, "prompt");
  const Sent sent = send(*engine, {.prompt = random_prompt(rng, 31), .max_tokens = kNoLimit, .ignore_eos = true});
  sent.collector->wait();
  EXPECT_EQ(sent.collector->last().finish, FinishReason::context);
}

TEST(Engine, PromptLogprobsAreThoseOfTheAnswerWouldBe) {
  // A greedy answer's log-probabilities, and those of the same tokens given as a prompt, are the same numbers.
  const auto engine = make_engine(world(1), options(100, 16));
  std::mt19937 rng(2);
  Request request{
      .prompt = random_prompt(rng, 20), .max_tokens = 40, .ignore_eos = true, .logprobs = true, .top_logprobs = 2};
  request.sampling.temperature = 0;
  const Sent answer = send(*engine, request);
  answer.collector->wait();
  Request again{.prompt = request.prompt, .max_tokens = 1, .top_logprobs = 2, .prompt_logprobs = true};
  for (const TokenResult& r : answer.collector->tokens()) again.prompt.push_back(r.id);
  const Sent scored = send(*engine, again);
  scored.collector->wait();
  const auto& prompt = scored.collector->prompt();
  ASSERT_EQ(prompt.size(), again.prompt.size() - 1);
  for (size_t i = 0; i < answer.collector->tokens().size(); i++) {
    const TokenResult &a = answer.collector->tokens()[i], &b = prompt[request.prompt.size() - 1 + i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(std::bit_cast<uint32_t>(a.logprob), std::bit_cast<uint32_t>(b.logprob));
    EXPECT_EQ(a.top[0].id, a.id) << "greedy takes the most likely";
    EXPECT_EQ(b.top[1].id, a.top[1].id);
  }
}

TEST(Engine, CancellingAtAnyMomentLeaksNothing) {
  const auto engine = make_engine(world(2), options(12, 8));
  std::mt19937 rng(3);
  for (int n = 0; n < 60; n++) {
    const int length = 1 + static_cast<int>(rng() % 80);
    const Sent a =
        send(*engine, {.prompt = random_prompt(rng, length), .max_tokens = 90, .ignore_eos = true, .logprobs = true});
    const Sent b = send(*engine, {.prompt = random_prompt(rng, 60), .max_tokens = 90, .ignore_eos = true});
    if (n % 2) a.collector->wait_for_deltas(n % 12);
    if (n % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 3000));
    engine->cancel(a.id);
    engine->cancel(a.id);
    engine->cancel(b.id);
    a.collector->wait();
    b.collector->wait();
    expect_idle(*engine);
  }
  engine->cancel(12345678);
  expect_idle(*engine);
}

TEST(Engine, ACancelledPromptStopsWithinAStep) {
  // A decodes one token a step and holds the engine in its third one, while B, of whose prompt each step takes one token,
  // is cancelled.
  std::mt19937 rng(4);
  std::promise<void> third, go, ended;
  std::atomic<int> steps_of_a = 0, steps_at_end = 0;
  std::atomic<FinishReason> finish = FinishReason::error;
  const auto engine = make_engine(world(1), options(100, 2));  // after what its callbacks use
  Request a{.prompt = {kBos}, .max_tokens = 90, .ignore_eos = true, .logprobs = true}, b{.prompt = random_prompt(rng, 95)};
  a.on_delta = [&](Delta&&) {
    if (++steps_of_a != 3) return;
    third.set_value();
    go.get_future().wait();
  };
  b.on_delta = [&](Delta&& delta) {
    steps_at_end = steps_of_a.load();
    finish = *delta.finish;
    EXPECT_EQ(delta.usage.completion_tokens, 0);
    ended.set_value();
  };
  const auto id_a = engine->submit(a), id_b = engine->submit(b);
  ASSERT_TRUE(id_a.ok() && id_b.ok());
  third.get_future().wait();
  engine->cancel(*id_b);
  go.set_value();
  ended.get_future().wait();
  EXPECT_EQ(finish, FinishReason::cancelled);
  EXPECT_EQ(steps_at_end, 3);
  engine->cancel(*id_a);
}

// Holds the engine in its first token's callback, and looks at the state when the next step's comes.
struct NextStep {
  std::promise<void> held{}, go{}, seen{};
  std::atomic<int> n_deltas{0};
  Engine* engine = nullptr;
  EngineState state{};

  Request request() {
    Request r{.prompt = {kBos}, .max_tokens = 3, .ignore_eos = true, .logprobs = true};
    r.on_delta = [this](Delta&&) {
      const int n = ++n_deltas;
      if (n == 2) {
        state = engine->state();
        seen.set_value();
      } else if (n == 1) {
        held.set_value();
        go.get_future().wait();
      }
    };
    return r;
  }
};

TEST(Engine, BlocksOfTheCancelledAreFreeInTheNextStep) {
  NextStep next;
  std::mt19937 rng(8);
  const auto engine = make_engine(world(1), options(100));
  next.engine = engine.get();
  std::vector<Sent> others;
  for (int i = 0; i < 5; i++)
    others.push_back(send(*engine, {.prompt = random_prompt(rng, 80), .max_tokens = 90, .ignore_eos = true}));
  ASSERT_TRUE(engine->submit(next.request()).ok());
  next.held.get_future().wait();
  for (const Sent& other : others) engine->cancel(other.id);
  next.go.set_value();
  next.seen.get_future().wait();
  EXPECT_EQ(next.state.running, 1);
  EXPECT_EQ(next.state.blocks_free, 99);
}

TEST(Engine, DeadlinesEndWhatWaitsWhatIsInItsPromptAndWhatAnswers) {
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(30); };
  std::mt19937 rng(9);
  NextStep next;
  const auto engine = make_engine(world(1), options(100, 4, 4));
  next.engine = engine.get();
  ASSERT_TRUE(engine->submit(next.request()).ok());
  next.held.get_future().wait();
  std::vector<Sent> sent;
  for (int i = 0; i < 6; i++)  // three run, three wait; the engine stands still until all are late
    sent.push_back(
        send(*engine, {.prompt = random_prompt(rng, 60), .max_tokens = 30, .ignore_eos = true, .deadline = soon()}));
  std::this_thread::sleep_until(soon());
  next.go.set_value();
  next.seen.get_future().wait();
  EXPECT_EQ(next.state.running, 1);
  EXPECT_EQ(next.state.blocks_free, 99);
  for (const Sent& s : sent) {
    s.collector->wait();
    EXPECT_EQ(s.collector->last().finish, FinishReason::deadline);
    EXPECT_EQ(s.collector->last().usage.completion_tokens, 0);
  }
  // An answer that is late keeps what it has said; one in time isn't touched.
  std::atomic<int> n{0};
  Request slow{.prompt = {kBos}, .max_tokens = 80, .ignore_eos = true, .logprobs = true, .deadline = soon()};
  std::promise<Delta> last;
  slow.on_delta = [&](Delta&& delta) {
    n += static_cast<int>(delta.tokens.size());
    if (delta.finish) return last.set_value(std::move(delta));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const Sent early = send(*engine, {.prompt = {kBos},
                                    .max_tokens = 2,
                                    .ignore_eos = true,
                                    .deadline = std::chrono::steady_clock::now() + std::chrono::hours(1)});
  ASSERT_TRUE(engine->submit(slow).ok());
  const Delta end = last.get_future().get();
  EXPECT_EQ(end.finish, FinishReason::deadline);
  EXPECT_GT(end.usage.completion_tokens, 0);
  EXPECT_EQ(end.usage.completion_tokens, n);
  early.collector->wait();
  EXPECT_EQ(early.collector->last().finish, FinishReason::length);
  expect_idle(*engine);
}

TEST(Engine, TheStateTellsHowLongTheLoopHasStoodStill) {
  NextStep next;
  const auto engine = make_engine(world(1), options(100));
  next.engine = engine.get();
  EXPECT_EQ(engine->state().busy_s, 0);
  ASSERT_TRUE(engine->submit(next.request()).ok());
  next.held.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_GE(engine->state().busy_s, 0.03);
  next.go.set_value();
  next.seen.get_future().wait();
  EXPECT_LT(next.state.busy_s, 0.03);
  while (engine->state().running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  engine->audit();
  const EngineState state = engine->state();
  uint64_t counted = 0;
  for (const uint64_t n : state.step_times.in_class) counted += n;
  EXPECT_EQ(counted, state.steps);
  EXPECT_EQ(state.rows, 3u);
  EXPECT_GE(state.step_times.sum_s, 0.03);
}

TEST(Engine, DestructionCancelsAll) {
  std::vector<Sent> sent;
  {
    const auto engine = make_engine(world(1), options(12, 16, 4));
    std::mt19937 rng(5);
    for (int i = 0; i < 20; i++)
      sent.push_back(send(*engine, {.prompt = random_prompt(rng, 50), .max_tokens = 90, .ignore_eos = true}));
  }
  int cancelled = 0;
  for (const Sent& s : sent) {
    s.collector->wait();
    cancelled += s.collector->last().finish == FinishReason::cancelled;
  }
  EXPECT_GT(cancelled, 0);
}

TEST(Engine, AFullQueueRefuses) {
  auto o = options(100);
  o.max_waiting = 3;
  const auto engine = make_engine(world(1), o);
  Gate gate(*engine);
  std::vector<Sent> sent;
  for (int i = 0; i < 3; i++) sent.push_back(send(*engine, {.prompt = {kBos}, .max_tokens = 1}));
  EXPECT_EQ(engine->state().waiting, 3);
  const auto refused = engine->submit({.prompt = {kBos}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().subject, "queue");
  gate.open();
  for (const Sent& s : sent) s.collector->wait();
  const Sent after = send(*engine, {.prompt = {kBos}, .max_tokens = 1});
  after.collector->wait();
  engine->audit();
}

TEST(Engine, TimingsAddUp) {
  const auto engine = make_engine(world(1), options(100));
  const auto begin = std::chrono::steady_clock::now();
  const Sent sent = send(*engine, {.prompt = {kBos, 5, 6}, .max_tokens = 20, .ignore_eos = true});
  sent.collector->wait();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Timings t = sent.collector->last().timings;
  EXPECT_GE(t.queue_s, 0);
  EXPECT_GT(t.prefill_s, 0);
  EXPECT_GT(t.decode_s, 0);
  EXPECT_LE(t.queue_s + t.prefill_s + t.decode_s, wall);
}

TEST(Engine, ARequestThatBansAllTokensIsAtFaultItself) {
  const auto engine = make_engine(world(1), options(10));
  Request request{.prompt = {kBos, 5}, .max_tokens = 5, .min_tokens = 1};
  for (TokenId id = 0; id < world(1).hparams.vocab_size; id++) request.stop_tokens.push_back(id);
  const Sent sent = send(*engine, std::move(request));
  sent.collector->wait();
  EXPECT_EQ(sent.collector->last().finish, FinishReason::error);
  EXPECT_EQ(sent.collector->last().error.subject, "min_tokens");
  expect_idle(*engine);
}

TEST(Engine, AModelOfNotANumberEndsWithAnError) {
  // Every weight of the output matrix is NaN: no token can be chosen, and the engine goes on.
  TinyWorld broken(1);
  const TensorView* head = broken.weights.find("output.weight");
  auto* values = reinterpret_cast<float*>(const_cast<std::byte*>(head->data));
  for (int64_t i = 0; i < head->rows() * head->columns(); i++) values[i] = NAN;
  auto loaded = model::Model::load(*model::find_arch("llama"), broken.hparams, broken.weights,
                                   {.activations = model::Activations::f32}, broken.team);
  ASSERT_TRUE(loaded.ok());
  Engine engine(*loaded, broken.tokenizer.get(), broken.team, options(10));
  for (int i = 0; i < 2; i++) {
    const Sent sent = send(engine, {.prompt = {kBos, 5}, .max_tokens = 5});
    sent.collector->wait();
    EXPECT_EQ(sent.collector->last().finish, FinishReason::error);
    EXPECT_FALSE(sent.collector->last().error.message.empty());
    EXPECT_EQ(sent.collector->last().error.subject, "");
  }
  expect_idle(engine);
}

}  // namespace
}  // namespace unisono::engine
