// Real models against transformers in float32 on the same dequantised weights (goldens by tests/golden/chat_reference.py):
// the prompt as rendered, its tokens, and at every step the token transformers would choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "engine/load.h"
#include "support/real_files.h"

namespace unisono::engine {
namespace {

// Two sums of the same numbers in another order differ by less than this in a logit; where the reference's two best are
// closer, either is right.
constexpr double kRounding = 2e-3;

struct Case {
  text::ChatInput input{};  // of a chat
  std::string rendered{};   // a chat's prompt, or the plain text
  std::vector<int32_t> prompt{}, ids{};
  std::vector<double> gaps{};
};

std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int64()));
  return ids;
}

std::vector<Case> read_cases(const std::string& name) {
  std::ifstream file(UNISONO_GOLDEN_DIR "/" + name);
  std::stringstream all;
  all << file.rdbuf();
  std::vector<Case> cases;
  const Json json = *parse_json(all.str());
  for (const Json& entry : json.at("cases").as_array()) {
    const JsonObject& object = entry.as_object();
    Case c{.prompt = ids_of(object.at("prompt")), .ids = ids_of(object.at("ids"))};
    for (const Json& gap : object.at("gaps").as_array()) c.gaps.push_back(gap.to_number<double>());
    const bool chat = object.contains("messages");
    c.rendered = std::string(object.at(chat ? "rendered" : "text").as_string());
    if (chat) c.input.messages = object.at("messages");
    cases.push_back(std::move(c));
  }
  return cases;
}

// Follows the reference's own answer, so that one near tie doesn't hide the steps after it.
void expect_same_choices(Loaded& loaded, ThreadTeam& team, const Case& c) {
  const model::Hparams& h = loaded.model.hparams();
  const auto n_blocks = static_cast<int>(c.prompt.size() + c.ids.size()) / model::kBlockTokens + 1;
  model::KvStore kv(model::KvType::f32, h.n_layers, h.n_kv_heads, h.head_dim, n_blocks);
  std::vector<int32_t> blocks;
  for (int b = n_blocks - 1; b >= 0; b--) blocks.push_back(b);
  std::vector<int32_t> step = c.prompt;
  int position = 0;
  for (size_t i = 0; i < c.ids.size(); i++) {
    const auto n = static_cast<int32_t>(step.size());
    const model::BatchSequence sequence{0, n, position, blocks};
    const int32_t last = n - 1;
    const auto logits = loaded.model.forward(model::Batch{step, {&sequence, 1}, {&last, 1}}, kv, team);
    const auto best = std::max_element(logits.begin(), logits.end());
    const double behind = double{*best} - double{logits[static_cast<size_t>(c.ids[i])]};
    EXPECT_LE(behind, c.gaps[i] < kRounding ? kRounding : 0.0)
        << "step " << i << ": " << best - logits.begin() << " instead of " << c.ids[i] << " after: " << c.rendered;
    position += n;
    step = {c.ids[i]};
  }
}

std::unique_ptr<Loaded> load_f32(const std::string& path, ThreadTeam& team) {
  auto loaded = load(path, {.model = {.activations = model::Activations::f32}}, team);
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return loaded.ok() ? std::move(*loaded) : nullptr;
}

TEST(Reference, SmolLm2ChatsAsTransformersDoes) {
  SKIP_WITHOUT_MODEL(path, testing::kDefaultModel);
  ThreadTeam team(2);
  const auto loaded = load_f32(path, team);
  ASSERT_NE(loaded, nullptr);
  for (const Case& c : read_cases("smollm2_chat.json")) {
    const auto prompt = loaded->chat_template->render(c.input, 0);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(prompt->text, c.rendered);
    EXPECT_EQ(loaded->tokenizer.encode(*prompt), c.prompt);
    expect_same_choices(*loaded, team, c);
  }
}

TEST(Reference, Gemma3ContinuesAsTransformersDoes) {
  SKIP_WITHOUT_MODEL(path, testing::kGemma);
  ThreadTeam team(2);
  const auto loaded = load_f32(path, team);
  ASSERT_NE(loaded, nullptr);
  for (const Case& c : read_cases("gemma3_text.json")) {
    EXPECT_EQ(loaded->tokenizer.encode(c.rendered, true, false), c.prompt);
    expect_same_choices(*loaded, team, c);
  }
}

}  // namespace
}  // namespace unisono::engine
