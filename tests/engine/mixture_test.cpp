// Mixtures of experts: files whose keys or tensors contradict each other are refused by name, and ties of the router go to
// the lower expert. That the sums are right, and the same however they are computed, is family_test.cpp's.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <variant>

#include "checkpoint/gguf_writer.h"
#include "engine/load.h"
#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

using Value = std::variant<uint32_t, float, bool, std::string>;

// A qwen3moe of one layer, which loads; tests then spoil it.
struct MixtureFile {
  std::string family = "qwen3moe";
  std::map<std::string, Value> keys = {{"block_count", 1u},
                                       {"embedding_length", 32u},
                                       {"attention.head_count", 2u},
                                       {"attention.head_count_kv", 1u},
                                       {"attention.key_length", 16u},
                                       {"feed_forward_length", 96u},
                                       {"context_length", 64u},
                                       {"attention.layer_norm_rms_epsilon", 1e-6f},
                                       {"expert_count", 4u},
                                       {"expert_used_count", 2u},
                                       {"expert_feed_forward_length", 32u}};
  std::map<std::string, std::vector<int64_t>> tensors = {
      {"token_embd.weight", {40, 32}},           {"output_norm.weight", {32}},
      {"blk.0.attn_norm.weight", {32}},          {"blk.0.ffn_norm.weight", {32}},
      {"blk.0.attn_q.weight", {32, 32}},         {"blk.0.attn_k.weight", {16, 32}},
      {"blk.0.attn_v.weight", {16, 32}},         {"blk.0.attn_output.weight", {32, 32}},
      {"blk.0.attn_q_norm.weight", {16}},        {"blk.0.attn_k_norm.weight", {16}},
      {"blk.0.ffn_gate_inp.weight", {4, 32}},    {"blk.0.ffn_gate_exps.weight", {4, 32, 32}},
      {"blk.0.ffn_up_exps.weight", {4, 32, 32}}, {"blk.0.ffn_down_exps.weight", {4, 32, 32}}};

  // Why it doesn't load; empty: it does.
  std::string refusal() const {
    testing::GgufWriter writer;
    writer.set("general.architecture", family);
    for (const auto& [key, value] : keys)
      std::visit([&, &name = key](const auto& v) { writer.set(family + "." + name, v); }, value);
    for (const auto& [name, dims] : tensors) {
      int64_t n = 1;
      for (const int64_t d : dims) n *= d;
      writer.tensor(name, dims, std::vector<float>(static_cast<size_t>(n), 0.5f));
    }
    const std::string path = ::testing::TempDir() + "unisono_mixture_" + std::to_string(getpid()) + ".gguf";
    check(writer.save(path), "a temporary file can be written");
    ThreadTeam team(1);
    const auto loaded = load_model(path, {}, team);
    std::remove(path.c_str());
    return loaded.ok() ? std::string() : loaded.error().message;
  }
};

void expect_refused(const MixtureFile& file, const std::string& name, const std::string& why) {
  const std::string said = file.refusal();
  EXPECT_NE(said.find("'" + name + "'"), std::string::npos) << said;
  EXPECT_NE(said.find(why), std::string::npos) << said;
  EXPECT_TRUE(said.empty() || said.back() == '.') << said;
}

TEST(MixtureFile, LoadsUnspoiled) {
  EXPECT_EQ(MixtureFile().refusal(), "");
  MixtureFile told;  // what says no more than is so anyway
  told.keys["expert_gating_func"] = 1u;
  told.keys["expert_weights_norm"] = true;
  told.keys["expert_weights_scale"] = 1.0f;
  told.keys["expert_shared_count"] = 0u;
  told.keys["expert_group_count"] = 1u;
  EXPECT_EQ(told.refusal(), "");
}

TEST(MixtureFile, ContradictoryOrUnknownKeysAreRefusedByName) {
  struct Case {
    std::string key;
    std::optional<Value> value;  // none: the key is absent
    std::string why;
  };
  const std::vector<Case> cases = {
      {"expert_count", std::nullopt, "lacks"},
      {"expert_count", 0u, ""},
      {"expert_count", 5000u, ""},
      {"expert_count", std::string("four"), ""},
      {"expert_used_count", std::nullopt, "lacks"},
      {"expert_used_count", 0u, ""},
      {"expert_used_count", 5u, "more than the 4 experts"},
      {"expert_used_count", 0xffffffffu, ""},
      {"expert_feed_forward_length", 0u, ""},
      {"expert_feed_forward_length", 40u, "multiple of 32"},
      {"expert_gating_func", 2u, "soft-max"},
      {"expert_weights_norm", 1u, ""},
      {"expert_weights_scale", 2.5f, "not supported"},
      {"expert_shared_count", 1u, "not supported"},
      {"expert_shared_feed_forward_length", 64u, "not supported"},
      {"expert_group_count", 8u, "not supported"},
      {"leading_dense_block_count", 1u, "not supported"},
  };
  for (const Case& c : cases) {
    MixtureFile file;
    file.keys.erase(c.key);
    if (c.value) file.keys[c.key] = *c.value;
    expect_refused(file, "qwen3moe." + c.key, c.why);
  }
  const MixtureFile dense{.family = "qwen2"};
  expect_refused(dense, "qwen2.expert_count", "not supported in this family");
}

// qwen2moe, whose rows all go to one more expert.
MixtureFile shared_file() {
  MixtureFile file{.family = "qwen2moe"};
  file.keys["expert_shared_feed_forward_length"] = 64u;
  file.tensors.erase("blk.0.attn_q_norm.weight");
  file.tensors.erase("blk.0.attn_k_norm.weight");
  file.tensors["blk.0.attn_q.bias"] = {32};
  file.tensors["blk.0.attn_k.bias"] = file.tensors["blk.0.attn_v.bias"] = {16};
  file.tensors["blk.0.ffn_gate_inp_shexp.weight"] = {32};
  file.tensors["blk.0.ffn_gate_shexp.weight"] = file.tensors["blk.0.ffn_up_shexp.weight"] = {64, 32};
  file.tensors["blk.0.ffn_down_shexp.weight"] = {32, 64};
  return file;
}

TEST(MixtureFile, TheSharedExpertIsCheckedToo) {
  EXPECT_EQ(shared_file().refusal(), "");
  MixtureFile as_matrix = shared_file();
  as_matrix.tensors["blk.0.ffn_gate_inp_shexp.weight"] = {1, 32};
  EXPECT_EQ(as_matrix.refusal(), "");
  for (const auto& [key, value] : std::vector<std::pair<std::string, uint32_t>>{{"expert_shared_feed_forward_length", 0},
                                                                                {"expert_shared_feed_forward_length", 40},
                                                                                {"expert_shared_count", 2}}) {
    MixtureFile file = shared_file();
    file.keys[key] = value;
    expect_refused(file, "qwen2moe." + key, "");
  }
  const std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {{"blk.0.ffn_gate_inp_shexp.weight", {64}},
                                                                            {"blk.0.ffn_gate_inp_shexp.weight", {2, 32}},
                                                                            {"blk.0.ffn_gate_shexp.weight", {32, 32}},
                                                                            {"blk.0.ffn_down_shexp.weight", {64, 32}}};
  for (const auto& [name, shape] : shapes) {
    MixtureFile file = shared_file();
    file.tensors[name] = shape;
    expect_refused(file, name, "has shape");
    file.tensors.erase(name);
    expect_refused(file, name, "has no tensor");
  }
}

TEST(MixtureFile, TensorsOfOtherShapesAreRefusedByName) {
  const std::map<std::string, std::vector<std::vector<int64_t>>> cases = {
      {"blk.0.ffn_gate_inp.weight", {{3, 32}, {4, 64}, {128}}},
      {"blk.0.ffn_gate_exps.weight", {{3, 32, 32}, {5, 32, 32}, {4, 64, 32}, {128, 32}, {4, 32, 32, 1}}},
      {"blk.0.ffn_up_exps.weight", {{4, 32, 64}, {4, 1024}}},
      {"blk.0.ffn_down_exps.weight", {{4, 64, 32}, {4096}}},
  };
  for (const auto& [name, shapes] : cases) {
    for (const auto& shape : shapes) {
      MixtureFile file;
      file.tensors[name] = shape;
      expect_refused(file, name, "has shape");
    }
    MixtureFile file;
    file.tensors.erase(name);
    expect_refused(file, name, "has no tensor");
  }
  MixtureFile fewer;
  fewer.keys["expert_count"] = 3u;
  expect_refused(fewer, "blk.0.ffn_gate_inp.weight", "has shape");
}

// A file may have more than its family's models usually do, as llama's with a bias after attention: left out of the sums,
// it would change answers, and nobody would know.
TEST(MixtureFile, TensorsThatNobodyReadsAreRefusedByName) {
  for (const char* name : {"blk.0.attn_output.bias", "blk.0.ffn_up_exps.bias", "blk.0.attn_k.bias",
                           "blk.1.attn_norm.weight", "output.bias", "position_embd.weight"}) {
    MixtureFile file;
    file.tensors[name] = {32};
    expect_refused(file, name, "not supported in the family 'qwen3moe'");
  }
  MixtureFile seeing;  // of other senses text needs nothing
  seeing.tensors["v.blk.0.attn_q.weight"] = seeing.tensors["mm.0.weight"] = {32, 32};
  EXPECT_EQ(seeing.refusal(), "");
  MixtureFile hostile;
  hostile.tensors["blk.0.\x1b[2J"] = {32};
  expect_refused(hostile, "blk.0.\\x1b[2J", "not supported");
}

// Weights of which some are put to one value.
class Changed : public model::TensorSource {
 public:
  Changed(const model::Hparams& h, std::string_view part, size_t from, float value) : weights_(h) {
    for (int layer = 0; layer < h.n_layers; layer++) {
      const std::string name = "blk." + std::to_string(layer) + "." + std::string(part) + ".weight";
      const TensorView view = *weights_.find(name);
      Buffer& memory = memory_.emplace_back(view.bytes());
      std::memcpy(memory.data(), view.data, view.bytes());
      for (float& v : memory.as<float>().subspan(from)) v = value;
      views_[name] = view;
      views_[name].data = memory.data();
    }
  }
  const TensorView* find(std::string_view name) const override {
    const auto found = views_.find(std::string(name));
    return found == views_.end() ? weights_.find(name) : &found->second;
  }

 private:
  RandomWeights weights_;
  std::deque<Buffer> memory_{};
  std::map<std::string, TensorView> views_{};
};

// The logits of the last of some tokens.
std::vector<float> logits(const model::TensorSource& source, const model::Hparams& h, const kernels::Ops* ops) {
  ThreadTeam team(2);
  auto model = model::Model::load(*model::find_arch("llama"), h, source, {.ops = ops}, team);
  check(model.ok(), "the weights fit");
  model::KvStore kv(model::KvType::f32, h.n_layers, h.n_kv_heads, h.head_dim, 4);
  std::vector<int32_t> tokens(40), blocks = {2, 0, 1};
  std::iota(tokens.begin(), tokens.end(), 30);
  const model::BatchSequence sequence{0, 40, 0, blocks};
  const int32_t row = 39;
  const auto out = model->forward({tokens, {&sequence, 1}, {&row, 1}}, kv, team);
  return {out.begin(), out.end()};
}

TEST(Mixture, TiesGoToTheLowerExperts) {
  const model::Hparams h = TinyWorld::mixture_hparams();
  for (const kernels::Ops* ops : kernels::compiled_ops()) {
    if (!ops->runs_here()) continue;
    // All scores are 0. So each row goes to experts 0 and 1, half of each, and what the others are doesn't matter.
    class Tied : public Changed {
     public:
      Tied(const model::Hparams& hparams, float others)
          : Changed(hparams, "ffn_gate_inp", 0, 0.0f),
            downs_(hparams, "ffn_down_exps", static_cast<size_t>(2 * hparams.d_model * hparams.d_ff), others) {}
      const TensorView* find(std::string_view name) const override {
        return name.find("ffn_down_exps") != name.npos ? downs_.find(name) : Changed::find(name);
      }

     private:
      Changed downs_;
    };
    const auto a = logits(Tied(h, 0), h, ops), b = logits(Tied(h, 1e6f), h, ops);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << ops->name;
    const auto random = logits(Changed(h, "ffn_gate_inp", 0, 0.0f), h, ops);
    EXPECT_EQ(std::memcmp(a.data(), random.data(), a.size() * sizeof(float)), 0) << ops->name;
  }
}

// Scores that are no numbers choose some experts, each once.
TEST(Mixture, ScoresThatAreNoNumbersAreHarmless) {
  const model::Hparams h = TinyWorld::mixture_hparams();
  const Changed spoilt(h, "ffn_gate_inp", 0, std::numeric_limits<float>::quiet_NaN());
  for (const kernels::Ops* ops : kernels::compiled_ops()) {
    if (!ops->runs_here()) continue;
    EXPECT_EQ(logits(spoilt, h, ops).size(), 288u) << ops->name;
  }
}

}  // namespace
}  // namespace unisono::engine
