// Each family's forward pass: logits against Hugging Face transformers in float32 (goldens by tests/golden/make.py), and
// the same bits whatever the instruction set, the number of threads, how a prompt is cut, and who shares the batch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "engine/load.h"
#include "kernels/tile_trap.h"
#include "support/real_files.h"

namespace unisono::engine {
namespace {

using model::Batch;
using model::BatchSequence;
using model::KvStore;
using model::KvType;

const std::string kTiny = std::string(UNISONO_GOLDEN_DIR) + "/tiny/";

class Tensors : public model::TensorSource {
 public:
  explicit Tensors(const checkpoint::Checkpoint& file) : file_(file) {}
  const TensorView* find(std::string_view name) const override { return file_.find(name); }

 private:
  const checkpoint::Checkpoint& file_;
};

// A model from a file, with a key/value store of its own and blocks in a scattered order.
struct Runner {
  Runner(const std::string& path, model::ModelOptions options, int threads, KvType kv_type = KvType::f32, int n_blocks = 64)
      : file(*checkpoint::Checkpoint::open(path)),
        description(*describe(file, path)),
        team(threads),
        model(*model::Model::load(*description.arch, description.hparams, Tensors(file), options, team)),
        kv(kv_type, description.hparams.n_layers, description.hparams.n_kv_heads, description.hparams.head_dim, n_blocks) {}

  // Blocks of sequence `s`, so that sequences don't overlap.
  std::vector<int32_t> table(int s, int tokens) const {
    std::vector<int32_t> blocks;
    for (int b = 0; b * 16 < tokens; b++) blocks.push_back((s * 5 + b * 17) % kv.n_blocks());
    return blocks;
  }
  // Logits of the last token of `tokens`, given in steps of `chunk`.
  std::vector<float> last_logits(const std::vector<int32_t>& tokens, int chunk) {
    const auto blocks = table(0, static_cast<int>(tokens.size()));
    std::vector<float> logits;
    for (int at = 0; at < static_cast<int>(tokens.size()); at += chunk) {
      const int n = std::min(chunk, static_cast<int>(tokens.size()) - at);
      logits = step(std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(n)), at, blocks);
    }
    return logits;
  }
  std::vector<float> step(std::span<const int32_t> tokens, int position, std::span<const int32_t> blocks) {
    const BatchSequence seq{0, static_cast<int32_t>(tokens.size()), position, blocks};
    const int32_t row = static_cast<int32_t>(tokens.size()) - 1;
    const auto out = model.forward(Batch{tokens, {&seq, 1}, {&row, 1}}, kv, team);
    return {out.begin(), out.end()};
  }

  checkpoint::Checkpoint file;
  Description description;
  ThreadTeam team;
  model::Model model;
  KvStore kv;
};

struct Golden {
  std::vector<int32_t> prompt, tokens;
  std::vector<float> logits;  // [1 + tokens - 1][vocab]
  size_t vocab;
};

Golden read_golden(const std::string& name) {
  std::ifstream text(kTiny + name + ".json");
  std::stringstream all;
  all << text.rdbuf();
  const Json json = *parse_json(all.str());
  Golden g;
  for (const auto& t : json.at("prompt").as_array()) g.prompt.push_back(static_cast<int32_t>(t.as_int64()));
  for (const auto& t : json.at("tokens").as_array()) g.tokens.push_back(static_cast<int32_t>(t.as_int64()));
  g.vocab = static_cast<size_t>(json.at("vocab_size").as_int64());
  std::ifstream raw(kTiny + name + ".f32", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(raw)), {});
  g.logits.resize(bytes.size() / 4);
  std::memcpy(g.logits.data(), bytes.data(), g.logits.size() * 4);
  return g;
}

class Family : public ::testing::TestWithParam<std::string> {};

TEST_P(Family, LogitsEqualTransformers) {
  const Golden g = read_golden(GetParam());
  Runner run(kTiny + GetParam() + ".gguf", {.activations = model::Activations::f32}, 2);
  ASSERT_EQ(static_cast<size_t>(run.description.hparams.vocab_size), g.vocab);
  std::vector<int32_t> tokens = g.prompt;
  auto logits = run.last_logits(tokens, 1000);
  const auto blocks = run.table(0, 200);
  ASSERT_GE(g.logits.size(), g.tokens.size() * g.vocab);
  for (size_t i = 0; i < g.tokens.size(); i++) {
    const float* want = &g.logits[i * g.vocab];
    const auto [low, high] = std::minmax_element(want, want + g.vocab);
    float worst = 0;
    for (size_t t = 0; t < g.vocab; t++) worst = std::max(worst, std::fabs(logits[t] - want[t]));
    ASSERT_LE(worst, 1e-4f * (*high - *low)) << "step " << i;
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    ASSERT_EQ(best, g.tokens[i]) << "step " << i;
    tokens.push_back(g.tokens[i]);
    logits = run.step({&tokens.back(), 1}, static_cast<int>(tokens.size()) - 1, blocks);
  }
}

TEST_P(Family, TheSameBitsHoweverItRuns) {
  const Golden g = read_golden(GetParam());
  std::vector<int32_t> prompt = g.prompt;
  for (int i = 0; i < 300; i++) prompt.push_back(static_cast<int32_t>((i * 37 + 11) % static_cast<int>(g.vocab)));
  for (const auto activations : {model::Activations::f32, model::Activations::bf16, model::Activations::int8})
    for (const KvType kv : {KvType::f32, KvType::f16, KvType::bf16}) {
      std::vector<float> want;
      for (const kernels::Ops* ops : kernels::compiled_ops()) {
        if (!ops->runs_here()) continue;
        for (const int threads : {1, 2, 3}) {
          Runner run(kTiny + GetParam() + ".gguf", {.activations = activations, .ops = ops}, threads, kv);
          for (const int chunk : {1000, 64, 7, 1}) {
            // Small steps are mostly barriers, and slow with more threads than cores: they need not meet all the rest.
            if (chunk < 64 && (threads == 3 || kv != KvType::bf16 || activations == model::Activations::bf16)) continue;
            const auto logits = run.last_logits(prompt, chunk);
            if (want.empty()) want = logits;
            ASSERT_EQ(std::memcmp(logits.data(), want.data(), want.size() * 4), 0)
                << ops->name << ", " << threads << " threads, chunks of " << chunk
                << ", key type " << static_cast<int>(kv);
          }
        }
      }
    }
}

// The table for CPUs with tiles, on any that runs the rest of it: each tile instruction is done by a model.
TEST_P(Family, TheSameBitsOnTiles) {
  const kernels::Ops& tiled = *kernels::compiled_ops().back();
  if (kernels::find_ops("avx512bf16") == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  ASSERT_STREQ(tiled.name, "amx");
  std::vector<int32_t> prompt = read_golden(GetParam()).prompt;
  for (int i = 0; i < 150; i++) prompt.push_back((i * 37 + 11) % 200);
  const auto want = Runner(kTiny + GetParam() + ".gguf", {}, 1, KvType::bf16).last_logits(prompt, 1000);
  const kernels::TileTrap trap;
  const int64_t before = kernels::TileTrap::tiles().instructions();
  for (const int threads : {1, 3}) {
    Runner run(kTiny + GetParam() + ".gguf", {.ops = &tiled}, threads, KvType::bf16);
    for (const int chunk : {1000, 50, 17, 9})
      ASSERT_EQ(std::memcmp(run.last_logits(prompt, chunk).data(), want.data(), want.size() * 4), 0)
          << threads << " threads, chunks of " << chunk;
    const bool multiplies_int8 = run.model.activations() == model::Activations::int8;
    EXPECT_EQ(kernels::TileTrap::tiles().instructions() > before, multiplies_int8 && !tiled.runs_here());
  }
}

TEST_P(Family, StrangersInTheBatchChangeNothing) {
  const Golden g = read_golden(GetParam());
  for (const int threads : {1, 2}) {
    Runner run(kTiny + GetParam() + ".gguf", {}, threads, KvType::bf16, 200);
    const auto alone = run.last_logits(g.prompt, 1000);
    // The same prompt between 15 others of other lengths.
    std::vector<int32_t> tokens, rows;
    std::vector<std::vector<int32_t>> tables;
    std::vector<BatchSequence> sequences;
    for (int s = 0; s < 16; s++) {
      const int n = s == 7 ? static_cast<int>(g.prompt.size()) : 1 + s * 3;
      tables.push_back({});
      for (int b = 0; b * 16 < n; b++) tables.back().push_back(s * 12 + b);
      sequences.push_back({static_cast<int32_t>(tokens.size()), n, 0, {}});
      for (int i = 0; i < n; i++)
        tokens.push_back(s == 7 ? g.prompt[static_cast<size_t>(i)] : (s * 31 + i * 7) % static_cast<int>(g.vocab));
      rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
    }
    for (size_t s = 0; s < 16; s++) sequences[s].block_table = tables[s];
    const auto out = run.model.forward(Batch{tokens, sequences, rows}, run.kv, run.team);
    EXPECT_EQ(std::memcmp(out.data() + 7 * g.vocab, alone.data(), g.vocab * 4), 0) << threads << " threads";
  }
}

// The last layer does no more than the rows whose logits are wanted ask for: any of them, of several sequences, or none.
TEST_P(Family, RowsWhoseLogitsNobodyWantsChangeNothing) {
  const Golden g = read_golden(GetParam());
  constexpr int kSequences = 3, kRows = 60;
  for (const int threads : {1, 2, 3})
    for (const int rows : {3, kRows}) {
      if (threads == 3 && rows == 3) continue;  // little but barriers, of more threads than cores
      Runner run(kTiny + GetParam() + ".gguf", {}, threads, KvType::bf16);
      std::vector<int32_t> tokens, all;
      std::vector<std::vector<int32_t>> tables;
      std::vector<BatchSequence> sequences;
      for (int s = 0; s < kSequences; s++) {
        tables.push_back({});
        for (int b = 0; b < 5; b++) tables.back().push_back(s * 5 + b);
        for (int i = 0; i < rows; i++) {
          all.push_back(static_cast<int32_t>(tokens.size()));
          tokens.push_back((s * 31 + i * 7) % static_cast<int>(g.vocab));
        }
      }
      for (int s = 0; s < kSequences; s++)
        sequences.push_back({s * rows, rows, 0, tables[static_cast<size_t>(s)]});
      const auto logits = run.model.forward(Batch{tokens, sequences, all}, run.kv, run.team);
      const std::vector<float> want(logits.begin(), logits.end());
      const int last = kSequences * rows - 1;
      for (const std::vector<int32_t>& wanted :
           std::vector<std::vector<int32_t>>{{}, {last}, {0, last}, {1, 2, rows - 1, rows, rows + 2}, {all.begin(), all.end() - 1}}) {
        std::vector<int32_t> some = wanted;
        some.erase(std::unique(some.begin(), some.end()), some.end());
        const auto out = run.model.forward(Batch{tokens, sequences, some}, run.kv, run.team);
        ASSERT_EQ(out.size(), some.size() * g.vocab);
        for (size_t i = 0; i < some.size(); i++)
          ASSERT_EQ(std::memcmp(&out[i * g.vocab], &want[static_cast<size_t>(some[i]) * g.vocab], g.vocab * 4), 0)
              << threads << " threads, row " << some[i] << " of " << tokens.size() << ", " << some.size() << " wanted";
      }
    }
}

// Sequences that share the blocks of their first 512 positions, which a step reads once for all of them.
TEST_P(Family, SharedBlocksChangeNothing) {
  const Golden g = read_golden(GetParam());
  const auto token = [&](int i) { return static_cast<int32_t>((i * 37 + 11) % static_cast<int>(g.vocab)); };
  constexpr int kShared = 512, kSequences = 5;
  for (const KvType kv : {KvType::f16, KvType::bf16, KvType::q8_0})
    for (const int threads : {1, 2}) {
      Runner run(kTiny + GetParam() + ".gguf", {}, threads, kv, 80);
      std::vector<int32_t> prefix, blocks;
      for (int i = 0; i < kShared; i++) prefix.push_back(token(i));
      for (int b = 0; b < kShared / 16; b++) blocks.push_back(b);
      run.step(prefix, 0, blocks);
      // Each goes on with a text of its own, of another length, in blocks of its own; then all take a step together.
      std::vector<std::vector<int32_t>> tables;
      std::vector<std::vector<float>> alone;
      std::vector<int32_t> tokens, rows;
      std::vector<BatchSequence> sequences;
      for (int s = 0; s < kSequences; s++) {
        tables.push_back(blocks);
        for (int b = 0; b < 4; b++) tables.back().push_back(kShared / 16 + s * 4 + b);
        std::vector<int32_t> own;
        for (int i = 0; i < 1 + s * 11; i++) own.push_back(token(1000 * s + i));
        const int position = kShared + static_cast<int>(own.size());
        run.step(own, kShared, tables.back());
        alone.push_back(run.step({&prefix[static_cast<size_t>(s)], 1}, position, tables.back()));
        tokens.push_back(prefix[static_cast<size_t>(s)]);
        rows.push_back(s);
        sequences.push_back({s, 1, position, {}});
      }
      for (size_t s = 0; s < kSequences; s++) sequences[s].block_table = tables[s];
      const auto out = run.model.forward(Batch{tokens, sequences, rows}, run.kv, run.team);
      for (size_t s = 0; s < kSequences; s++)
        EXPECT_EQ(std::memcmp(out.data() + s * g.vocab, alone[s].data(), g.vocab * 4), 0) << threads << " threads, sequence " << s;
    }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Family, ::testing::Values("llama", "llama-mixed", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "qwen3moe-bf16", "mixtral", "gemma3", "gemma3-scaled"),
                         [](const auto& t) {
                           std::string name = t.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The same on trained models, at the shapes and types people run.
class RealModel : public ::testing::TestWithParam<const char*> {};

TEST_P(RealModel, TheSameBitsHoweverItRuns) {
  const std::string path = unisono::testing::model_file(GetParam());
  if (path.empty()) GTEST_SKIP() << "needs the model " << GetParam() << ", which is not on this machine";
  std::vector<float> want;
  std::vector<int32_t> prompt;
  struct Way {
    const char* isa;
    int threads, chunk;
  };
  for (const Way way : {Way{"scalar", 2, 1000}, Way{"avx2", 2, 1000}, Way{"avx2", 1, 7}, Way{"avxvnni", 2, 64}, Way{"avx512", 1, 1000}, Way{"avx512", 2, 64},
                        Way{"avx512", 3, 1000}, Way{"avx512", 2, 7}, Way{"avx512", 1, 1}}) {
    const kernels::Ops* ops = kernels::find_ops(way.isa);
    if (ops == nullptr) continue;
    Runner run(path, {.ops = ops}, way.threads, KvType::bf16);
    for (int i = 0; prompt.size() < 72; i++) prompt.push_back((i * 7919 + 100) % run.description.hparams.vocab_size);
    const auto logits = run.last_logits(prompt, way.chunk);
    if (want.empty()) want = logits;
    EXPECT_EQ(std::memcmp(logits.data(), want.data(), want.size() * 4), 0)
        << way.isa << ", " << way.threads << " threads, chunks of " << way.chunk;
  }
}

TEST_P(RealModel, StrangersInTheBatchChangeNothing) {
  const std::string path = unisono::testing::model_file(GetParam());
  if (path.empty()) GTEST_SKIP() << "needs the model " << GetParam() << ", which is not on this machine";
  Runner run(path, {}, 2, KvType::bf16, 160);
  std::vector<int32_t> tokens, rows, alone;
  std::vector<std::vector<int32_t>> tables(16);
  std::vector<BatchSequence> sequences;
  const auto token = [&](int s, int i) { return (s * 4001 + i * 7919 + 100) % run.description.hparams.vocab_size; };
  for (int i = 0; i < 50; i++) alone.push_back(token(7, i));
  const auto want = run.last_logits(alone, 1000);
  for (int s = 0; s < 16; s++) {
    const int n = s == 7 ? 50 : 1 + s * 3;
    for (int b = 0; b * 16 < n; b++) tables[static_cast<size_t>(s)].push_back(s * 10 + b);
    sequences.push_back({static_cast<int32_t>(tokens.size()), n, 0, tables[static_cast<size_t>(s)]});
    for (int i = 0; i < n; i++) tokens.push_back(token(s, i));
    rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
  }
  const auto out = run.model.forward(Batch{tokens, sequences, rows}, run.kv, run.team);
  EXPECT_EQ(std::memcmp(out.data() + 7 * want.size(), want.data(), want.size() * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Files, RealModel, ::testing::Values("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m.Q4_K_M.gguf"),
                         [](const auto& t) { return std::string(t.param).substr(0, 5) == "SmolL" ? "SmolLM2" : "Gemma3"; });

}  // namespace
}  // namespace unisono::engine
