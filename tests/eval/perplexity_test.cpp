// Perplexity and divergence on a small random model, against the same written out plainly.
#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/tiny_world.h"

namespace unisono::eval {
namespace {

constexpr int kContext = 80, kChunks = 2;

std::vector<int32_t> some_tokens(int vocab) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < kContext * kChunks; i++) tokens.push_back((i * 31 + 7) % vocab);
  return tokens;
}

// All logits of each chunk, in one step.
std::vector<float> all_logits(engine::TinyWorld& world, std::span<const int32_t> tokens) {
  const auto& h = world.hparams;
  model::KvStore kv(model::KvType::f32, h.n_layers, h.n_kv_heads, h.head_dim, 8);
  const std::vector<int32_t> blocks = {7, 6, 5, 4, 3};
  std::vector<int32_t> rows(kContext);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> out;
  for (int c = 0; c < kChunks; c++) {
    const model::BatchSequence sequence{0, kContext, 0, blocks};
    const auto logits = world.model->forward({tokens.subspan(static_cast<size_t>(c * kContext), kContext), {&sequence, 1}, rows}, kv, world.team);
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

std::string write_reference(const std::vector<int32_t>& tokens, const std::vector<float>& logits, int vocab, const char* magic = "UKL1") {
  const std::string path = (std::filesystem::temp_directory_path() / ("unisono_eval_" + std::to_string(getpid()) + ".ukl")).string();
  std::ofstream file(path, std::ios::binary);
  const int32_t head[3] = {kChunks, kContext, vocab};
  file.write(magic, 4);
  file.write(reinterpret_cast<const char*>(head), 12);
  for (int c = 0; c < kChunks; c++) {
    file.write(reinterpret_cast<const char*>(&tokens[static_cast<size_t>(c * kContext)]), 4 * kContext);
    const size_t row = static_cast<size_t>(kContext) * static_cast<size_t>(vocab);
    file.write(reinterpret_cast<const char*>(&logits[static_cast<size_t>(c) * row]), static_cast<std::streamsize>(4 * row));
  }
  return path;
}

const auto kSilent = [](const PerplexityReport&) {};

class Perplexity : public ::testing::TestWithParam<model::Hparams> {};

TEST_P(Perplexity, IsTheMeanLossOfTheLogits) {
  engine::TinyWorld world(2, GetParam());
  const int vocab = world.hparams.vocab_size;
  const auto tokens = some_tokens(vocab);
  const auto logits = all_logits(world, tokens);
  double loss = 0;
  for (int c = 0; c < kChunks; c++)
    for (int i = 0; i + 1 < kContext; i++) {
      const float* row = &logits[static_cast<size_t>((c * kContext + i) * vocab)];
      double sum = 0;
      for (int t = 0; t < vocab; t++) sum += std::exp(static_cast<double>(row[t]));
      loss += std::log(sum) - row[tokens[static_cast<size_t>(c * kContext + i + 1)]];
    }
  const auto report = perplexity(*world.model, world.team, model::KvType::f32, tokens, kContext, kSilent);
  EXPECT_EQ(report.chunks, kChunks);
  EXPECT_NEAR(report.perplexity, std::exp(loss / (kChunks * (kContext - 1))), 1e-6 * report.perplexity);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, Perplexity, ::testing::Values(engine::TinyWorld::tiny_hparams(), engine::TinyWorld::mixture_hparams()),
    [](const auto& t) { return std::string(t.param.n_experts > 0 ? "Mixture" : "Dense"); });

TEST(Divergence, FromItselfIsNothingAndFromAnotherIsWhatTheFormulaSays) {
  engine::TinyWorld world(1);
  const int vocab = world.hparams.vocab_size;
  const auto tokens = some_tokens(vocab);
  auto logits = all_logits(world, tokens);
  auto same = divergence(*world.model, world.team, model::KvType::f32, write_reference(tokens, logits, vocab), kSilent);
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_NEAR(same->mean_kl, 0, 1e-12);
  EXPECT_EQ(same->same_top, 1);

  const auto mine = logits;
  for (size_t i = 0; i < logits.size(); i += 3) logits[i] += 0.5f;
  double kl = 0;
  for (int r = 0; r < kChunks * kContext; r++) {
    if (r % kContext < kContext / 2) continue;
    double p_sum = 0, q_sum = 0;
    const float *p = &logits[static_cast<size_t>(r * vocab)], *q = &mine[static_cast<size_t>(r * vocab)];
    for (int t = 0; t < vocab; t++) p_sum += std::exp(static_cast<double>(p[t])), q_sum += std::exp(static_cast<double>(q[t]));
    for (int t = 0; t < vocab; t++) kl += std::exp(static_cast<double>(p[t])) / p_sum * (p[t] - q[t] - std::log(p_sum / q_sum));
  }
  auto other = divergence(*world.model, world.team, model::KvType::f32, write_reference(tokens, logits, vocab), kSilent);
  ASSERT_TRUE(other.ok());
  EXPECT_NEAR(other->mean_kl, kl / (kChunks * kContext / 2), 1e-9);
}

TEST(Divergence, RefusesWhatIsNoReference) {
  engine::TinyWorld world(1);
  const int vocab = world.hparams.vocab_size;
  auto tokens = some_tokens(vocab);
  const std::vector<float> logits(tokens.size() * static_cast<size_t>(vocab));
  const auto refused = [&](const std::string& path) {
    auto result = divergence(*world.model, world.team, model::KvType::f32, path, kSilent);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(refused("/nonexistent").find("Can't read"), std::string::npos);
  EXPECT_NE(refused(write_reference(tokens, logits, vocab, "GGUF")).find("UKL1"), std::string::npos);
  EXPECT_NE(refused(write_reference(tokens, logits, vocab - 1)).find("vocabulary"), std::string::npos);
  std::string path = write_reference(tokens, logits, vocab);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_NE(refused(path).find("cut short"), std::string::npos);
  tokens[5] = vocab;
  EXPECT_NE(refused(write_reference(tokens, logits, vocab)).find("outside the vocabulary"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace unisono::eval
