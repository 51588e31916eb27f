// Random schedules against one engine: requests come, are cancelled, run out of time, take turns and give way, in pools
// that are far too small. Each answer is what it is alone, or a beginning of it; nothing leaks. UNISONO_SOAK: how many
// requests
// (`make soak`); by default few.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <random>
#include <thread>

#include "engine/collector.h"
#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

constexpr int kContext = 160;
constexpr int kKinds = 64;

int soak_requests() {
  const char* wanted = std::getenv("UNISONO_SOAK");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : 240;
}

// Memory of this process in KiB.
long resident() {
  std::ifstream file("/proc/self/statm");
  long pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4;
}

// 64 requests, no two alike; many begin alike. Every choice of an n = 3 is a request of its own here.
std::vector<Request> kinds() {
  std::mt19937 rng(11);
  std::vector<TokenId> shared{kBos};
  while (shared.size() < 80) shared.push_back(static_cast<TokenId>(3 + rng() % 285));
  std::vector<Request> out;
  for (int i = 0; i < kKinds; i++) {
    Request r{.max_tokens = 1 + static_cast<int>(rng() % 48)};
    const size_t kept = i % 2 == 0 ? 16 + rng() % 64 : 1;
    r.prompt.assign(shared.begin(), shared.begin() + static_cast<long>(kept));
    for (size_t n = rng() % (i % 8 == 0 ? 70 : 12); n > 0; n--) r.prompt.push_back(static_cast<TokenId>(3 + rng() % 285));
    r.sampling = {.temperature = i % 3 ? 0.9f : 0.0f, .seed = rng()};
    r.sampling.choice = static_cast<uint32_t>(i % 3);
    if (i % 4 == 1) r.sampling.top_p = 0.9f;
    if (i % 5 == 1) r.sampling.repetition_penalty = 1.2f;
    if (i % 3 == 0) r.stop = {"e", "\u65e5\u672c", "the a"};
    if (i % 4 == 0) r.ignore_eos = true;
    r.logprobs = true;
    r.top_logprobs = i % 3;
    r.prompt_logprobs = i % 7 == 0;
    if (i % 9 == 0) r.cache_salt = "salt";
    out.push_back(std::move(r));
  }
  return out;
}

EngineOptions options(int n_blocks, int budget, bool prefix_cache) {
  return {.max_context = kContext,
          .n_blocks = n_blocks,
          .token_budget = budget,
          .max_running = 24,
          .prefix_cache = prefix_cache,
          .end_tokens = {kEos}};
}

std::vector<std::string> alone(TinyWorld& world, const std::vector<Request>& requests) {
  Engine engine(*world.model, world.tokenizer.get(), world.team, options(100, 512, false));
  std::vector<std::string> out;
  for (const Request& request : requests) {
    const Sent sent = send(engine, request);
    sent.collector->wait();
    out.push_back(sent.collector->record());
  }
  return out;
}

struct Flying {
  Sent sent{};
  size_t kind = 0;
};

struct Counts {
  int whole = 0, cut = 0;
  uint64_t preemptions = 0;
};

// A cut answer's tokens are the first of the whole one's: a record's last line lists them.
void expect_beginning(const std::string& cut, const std::string& whole) {
  const std::string some = cut.substr(cut.rfind('\n') + 1), all = whole.substr(whole.rfind('\n') + 1);
  EXPECT_TRUE(all.starts_with(some)) << some << " is no beginning of " << all;
}

void land(const Flying& flying, const std::vector<std::string>& truth, Counts& counts) {
  flying.sent.collector->wait();
  const FinishReason finish = *flying.sent.collector->last().finish;
  if (finish == FinishReason::cancelled || finish == FinishReason::deadline) {
    counts.cut++;
    expect_beginning(flying.sent.collector->record(), truth[flying.kind]);
  } else {
    counts.whole++;
    EXPECT_EQ(flying.sent.collector->record(), truth[flying.kind]) << "request " << flying.kind;
  }
}

Counts storm(Engine& engine, const std::vector<Request>& requests, const std::vector<std::string>& truth, int n,
             unsigned seed) {
  std::mt19937 rng(seed);
  Counts counts;
  std::deque<Flying> flying;
  for (int i = 0; i < n; i++) {
    const size_t kind = rng() % kKinds;
    Request request = requests[kind];
    request.priority = rng() % 8 == 0 ? static_cast<int>(rng() % 3) - 1 : 0;
    request.owner = std::string(1, static_cast<char>('a' + rng() % 3));
    if (rng() % 10 == 0) request.deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(rng() % 20'000);
    flying.push_back({send(engine, std::move(request)), kind});
    if (rng() % 6 == 0) engine.cancel(flying[rng() % flying.size()].sent.id);
    if (rng() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 1000));
    if (rng() % 64 == 0) engine.audit();
    while (flying.size() > 64) {
      land(flying.front(), truth, counts);
      flying.pop_front();
    }
  }
  for (const Flying& last : flying) land(last, truth, counts);
  engine.audit();
  const EngineState state = engine.state();
  EXPECT_EQ(state.running + state.waiting, 0);
  EXPECT_EQ(state.blocks_free, state.blocks_total);
  counts.preemptions = state.preemptions;
  return counts;
}

class Soak : public ::testing::TestWithParam<model::Hparams> {};

TEST_P(Soak, RandomSchedulesChangeNoAnswerAndLeakNothing) {
  TinyWorld one(1, GetParam()), two(2, GetParam());
  const auto requests = kinds();
  const auto truth = alone(one, requests);
  const int n = soak_requests(), per_engine = std::max(20, n / 12);
  unsigned seed = 0;
  Counts all;
  long early = 0;
  for (const bool prefix_cache : {true, false})
    for (const int budget : {16, 64, 512})
      for (TinyWorld* world : {&one, &two}) {
        Engine engine(*world->model, world->tokenizer.get(), world->team,
                      options(10 + static_cast<int>(seed % 3) * 7, budget, prefix_cache));
        const Counts counts = storm(engine, requests, truth, per_engine, ++seed);
        all.whole += counts.whole;
        all.cut += counts.cut;
        all.preemptions += counts.preemptions;
        if (seed == 4) early = resident();
        if (HasFailure()) return;
      }
  const long grown = resident() - early;
  std::cout << all.whole << " whole, " << all.cut << " cut, " << all.preemptions << " preemptions; memory grew by " << grown
            << " KiB since a third\n";
  EXPECT_EQ(all.whole + all.cut, 12 * per_engine);
  EXPECT_GT(all.whole, all.cut);
  EXPECT_GT(all.cut, 0);
  EXPECT_GT(all.preemptions, 0u);
  EXPECT_LT(grown, 8 * 1024);
}

INSTANTIATE_TEST_SUITE_P(Worlds, Soak, ::testing::Values(TinyWorld::tiny_hparams(), TinyWorld::mixture_hparams()),
                         [](const auto& t) { return std::string(t.param.n_experts > 0 ? "Mixture" : "Dense"); });

}  // namespace
}  // namespace unisono::engine
