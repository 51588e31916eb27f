// A small trained model through the whole engine: the text its makers published, on every instruction set, and the same
// answers under every load.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "engine/collector.h"
#include "engine/load.h"
#include "kernels/ops.h"

namespace unisono::engine {
namespace {

const std::string kModel = UNISONO_SHARED_DIR "/data/models/stories260K.gguf";
const std::string kText = UNISONO_SHARED_DIR "/data/models/stories260K.txt";

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "needs " << kModel << ", which only a development machine has";
  }
  static std::unique_ptr<Loaded> load_model(ThreadTeam& team, const model::ModelOptions& options = {}) {
    auto loaded = load(kModel, {.model = options}, team);
    check(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    return std::move(*loaded);
  }
};

TEST_F(Stories, GreedyTextIsThePublishedOne) {
  std::ifstream file(kText);
  std::stringstream all;
  all << file.rdbuf();
  std::string truth = all.str();
  while (truth.ends_with('\n')) truth.pop_back();
  ThreadTeam team(1);
  for (const kernels::Ops* ops : kernels::compiled_ops()) {
    if (!ops->runs_here()) continue;
    const auto loaded = load_model(team, {.activations = model::Activations::f32, .ops = ops});
    Engine engine(loaded->model, loaded->tokenizer, team, {.kv_type = model::KvType::f32, .end_tokens = loaded->description.end_tokens});
    Request request{.prompt = {*loaded->tokenizer.bos()}, .max_tokens = 400};
    request.sampling.temperature = 0;
    const Sent sent = send(engine, request);
    sent.collector->wait();
    ASSERT_GE(sent.collector->text().size(), truth.size()) << ops->name;
    EXPECT_EQ(sent.collector->text().substr(0, truth.size()), truth) << ops->name;
  }
}

std::vector<Request> requests(const text::Tokenizer& tokenizer) {
  std::mt19937 rng(1);
  std::vector<Request> out;
  for (const char* start :
       {"", "Once upon a time", "Lily and Tom went to the park. They saw a big dog.", "The end", "One day,",
        "Sara had a red ball that she loved very much. She played with it all day, and at night she put it"}) {
    for (int variant = 0; variant < 3; variant++) {
      Request r{.prompt = tokenizer.encode(start, true, false), .max_tokens = 20 + static_cast<int>(rng() % 60)};
      r.sampling = {.temperature = static_cast<float>(variant) * 0.6f, .seed = rng()};
      if (variant == 2) r.sampling.top_p = 0.95f;
      if (rng() % 3 == 0) r.sampling.top_k = 40;
      if (rng() % 3 == 0) r.stop = {"Mom", "\n", "happy."};
      r.logprobs = true;
      r.top_logprobs = variant;
      r.prompt_logprobs = rng() % 2;
      out.push_back(std::move(r));
    }
  }
  return out;
}

TEST_F(Stories, EachAnswerIsAsIfAlone) {
  ThreadTeam one(1);
  const auto loaded = load_model(one);
  const auto all = requests(loaded->tokenizer);
  std::vector<std::string> truth;
  {
    Engine engine(loaded->model, loaded->tokenizer, one,
                  {.max_context = 256, .end_tokens = loaded->description.end_tokens});
    for (const Request& request : all) {
      const Sent sent = send(engine, request);
      sent.collector->wait();
      truth.push_back(sent.collector->record());
    }
  }
  struct Load {
    int n_threads, n_blocks, token_budget, max_running;
  };
  for (const Load load : {Load{1, 400, 512, 64}, Load{2, 17, 16, 8}, Load{3, 20, 64, 32}}) {
    ThreadTeam team(load.n_threads);
    const auto again = load_model(team);
    Engine engine(again->model, again->tokenizer, team,
                  {.max_context = 256,
                   .n_blocks = load.n_blocks,
                   .token_budget = load.token_budget,
                   .max_running = load.max_running,
                   .end_tokens = loaded->description.end_tokens});
    std::vector<Sent> sent(all.size());
    for (size_t i = all.size(); i-- > 0;) sent[i] = send(engine, all[i]);
    for (size_t i = 0; i < all.size(); i++) {
      sent[i].collector->wait();
      EXPECT_EQ(sent[i].collector->record(), truth[i]) << "request " << i << ", blocks " << load.n_blocks;
    }
    engine.audit();
    EXPECT_EQ(engine.state().blocks_free, load.n_blocks);
  }
}

}  // namespace
}  // namespace unisono::engine
