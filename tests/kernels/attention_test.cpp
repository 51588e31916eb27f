// Attention against a soft-max in double, and against itself: however queries are grouped and splits are cut, on whichever
// table, the bits are the same.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>

#include "base/thread_team.h"
#include "kernels/random.h"

namespace unisono::kernels {
namespace {

constexpr const char* kTypeNames[] = {"_f16", "_bf16", "_f32", "_q8_0"};

struct Case {
  int head_dim, group, positions, window;
  KvType type;
};

float rounded_to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return bf16_to_float(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

// One kv head with keys and values at scattered blocks.
struct Fixture {
  explicit Fixture(const Case& c, const Ops& ops) : c(c) {
    const int n_blocks = (c.positions + kPage - 1) / kPage;
    kv.stride = kv_bytes(c.type, c.head_dim);
    memory = Buffer(kv.stride * static_cast<size_t>(n_blocks + 3));
    std::memset(memory.data(), 0xff, memory.size());  // NaN wherever nothing was stored
    kv.base = memory.data();
    kv.head_dim = c.head_dim;
    kv.type = c.type;
    blocks.resize(static_cast<size_t>((n_blocks + 15) / 16 * 16));
    for (int i = 0; i < n_blocks; i++) blocks[static_cast<size_t>(i)] = (i * 7 + 3) % (n_blocks + 3);
    if ((n_blocks + 3) % 7 == 0)
      for (int i = 0; i < n_blocks; i++) blocks[static_cast<size_t>(i)] = i + 1;
    const auto dim = static_cast<size_t>(c.head_dim);
    keys = random_floats(static_cast<size_t>(c.positions) * dim, 21);
    values = random_floats(static_cast<size_t>(c.positions) * dim, 22);
    queries = random_floats(static_cast<size_t>(c.positions * c.group) * dim, 23, 16 / std::sqrt(static_cast<float>(dim)));
    for (int p = 0; p < c.positions; p++)
      ops.store_kv(kv, blocks[static_cast<size_t>(p / kPage)], p % kPage, &keys[static_cast<size_t>(p) * dim], &values[static_cast<size_t>(p) * dim]);
  }

  // Attends with tokens [first, first + tokens), their states one after the other, `stride` floats a query.
  void attend(const Ops& ops, int first, int tokens, int begin, int end, bool fold, float* states, size_t stride) const {
    std::vector<AttentionToken> some;
    for (int t = 0; t < tokens; t++)
      some.push_back({&queries[static_cast<size_t>((first + t) * c.group * c.head_dim)], states + static_cast<size_t>(t * c.group) * stride, first + t});
    ops.attend({some.data(), tokens, c.group, stride, c.window, blocks.data(), kv}, begin, end, fold);
  }
  int first_split(int position) const { return c.window > 0 ? std::max(0, position - c.window + 1) / kSplit : 0; }

  // Outputs of tokens [first, first + tokens), all splits folded at once.
  std::vector<float> run(const Ops& ops, int first, int tokens) const {
    const size_t floats = attention_state_floats(c.head_dim);
    std::vector<float> states(floats * static_cast<size_t>(tokens * c.group));
    for (int r = 0; r < tokens * c.group; r++) attention_begin(&states[floats * static_cast<size_t>(r)], c.head_dim);
    attend(ops, first, tokens, first_split(first), (first + tokens - 1) / kSplit + 1, true, states.data(), floats);
    return finish(ops, states, tokens);
  }
  // The same, each split's state kept and folded afterwards.
  std::vector<float> run_apart(const Ops& ops, int first, int tokens) const {
    const size_t floats = attention_state_floats(c.head_dim);
    const int begin = first_split(first), end = (first + tokens - 1) / kSplit + 1;
    const size_t stride = floats * static_cast<size_t>(end - begin);
    std::vector<float> parts(stride * static_cast<size_t>(tokens * c.group)), states(floats * static_cast<size_t>(tokens * c.group));
    const int middle = (begin + end) / 2;  // as two threads would
    attend(ops, first, tokens, middle, end, false, parts.data() + floats * static_cast<size_t>(middle - begin), stride);
    if (middle > begin) attend(ops, first, tokens, begin, middle, false, parts.data(), stride);
    for (int r = 0; r < tokens * c.group; r++) {
      attention_begin(&states[floats * static_cast<size_t>(r)], c.head_dim);
      for (int s = 0; s < end - begin; s++)
        ops.attention_fold(&states[floats * static_cast<size_t>(r)], &parts[stride * static_cast<size_t>(r) + floats * static_cast<size_t>(s)], c.head_dim);
    }
    return finish(ops, states, tokens);
  }
  std::vector<float> finish(const Ops& ops, const std::vector<float>& states, int tokens) const {
    std::vector<float> out(static_cast<size_t>(tokens * c.group * c.head_dim));
    for (int r = 0; r < tokens * c.group; r++)
      ops.attention_finish(&states[attention_state_floats(c.head_dim) * static_cast<size_t>(r)], &out[static_cast<size_t>(r * c.head_dim)], c.head_dim);
    return out;
  }

  // What the store holds of x[d], one of a token's keys or values.
  double stored(const float* x, size_t d) const {
    switch (c.type) {
      case KvType::f32: return x[d];
      case KvType::f16: return half_to_float(float_to_half(x[d]));
      case KvType::bf16: return rounded_to_bf16(x[d]);
      case KvType::q8_0: break;
    }
    float top = 0;
    for (size_t i = d / 32 * 32; i < std::min(static_cast<size_t>(c.head_dim), d / 32 * 32 + 32); i++) top = std::max(top, std::fabs(x[i]));
    return static_cast<double>(top / 127) * std::nearbyint(x[d] * (127 / top));
  }
  // With bf16 keys and values queries are rounded too, and exponentials as their split has them.
  std::vector<double> exact(int position, int head) const {
    const auto dim = static_cast<size_t>(c.head_dim);
    const bool rounds = c.type == KvType::bf16;
    const float* q = &queries[static_cast<size_t>(position * c.group + head) * dim];
    const int from = c.window > 0 ? std::max(0, position - c.window + 1) : 0;
    std::vector<double> weight, out(dim);
    for (int p = from; p <= position; p++) {
      double s = 0;
      for (size_t d = 0; d < dim; d++) s += (rounds ? rounded_to_bf16(q[d]) : q[d]) * stored(&keys[static_cast<size_t>(p) * dim], d);
      weight.push_back(s);
    }
    const double top = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (int p = from; p <= position;) {
      const int end = std::min(position + 1, (p / kSplit + 1) * kSplit);
      const auto split = std::span(weight).subspan(static_cast<size_t>(p - from), static_cast<size_t>(end - p));
      const double own = *std::max_element(split.begin(), split.end());
      for (double& w : split)
        sum += w = (rounds ? rounded_to_bf16(static_cast<float>(std::exp(w - own))) : std::exp(w - own)) * std::exp(own - top);
      p = end;
    }
    for (size_t i = 0; i < weight.size(); i++)
      for (size_t d = 0; d < dim; d++) out[d] += weight[i] / sum * stored(&values[(static_cast<size_t>(from) + i) * dim], d);
    return out;
  }

  Case c;
  Buffer memory;
  KvView kv;
  std::vector<int32_t> blocks;
  std::vector<float> keys, values, queries;
};

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, EqualsASoftMaxInDouble) {
  FlushDenormals flushed;
  const Case c = GetParam();
  // An exponential between two bf16 may fall to either, and a weight be off by 1/256; few do.
  const double near = c.type == KvType::bf16 ? 1.0 / 256 : 1e-5, mean = c.type == KvType::bf16 ? 2e-4 : 1e-5;
  double off = 0, count = 0;
  const Fixture f(c, best_ops());
  for (int position : {0, 1, 15, 16, 100, 255, 256, 300, 511, 600, 699}) {
    if (position >= c.positions) break;
    const auto y = f.run(best_ops(), position, 1);
    for (int h = 0; h < c.group; h++) {
      const auto want = f.exact(position, h);
      for (size_t d = 0; d < want.size(); d++) {
        const double got = y[static_cast<size_t>(h * c.head_dim) + d];
        ASSERT_NEAR(got, want[d], near) << position << " head " << h << " dim " << d;
        off += std::fabs(got - want[d]);
        count++;
      }
    }
  }
  EXPECT_LT(off / count, mean);
}

TEST_P(Attention, TheSameBitsHoweverItIsCut) {
  FlushDenormals flushed;
  const Case c = GetParam();
  const Fixture f(c, best_ops());
  const size_t row = static_cast<size_t>(c.group * c.head_dim);
  const int most = kMaxQueries / c.group;
  for (int first : {0, 5, 250, 300, 500, 680}) {
    const int tokens = std::min(most, c.positions - first);
    if (tokens <= 0) break;
    const auto want = f.run(*compiled_ops()[0], first, tokens);
    for (const Ops* ops : ops_here()) {
      const Fixture own(c, *ops);  // keys and values stored by the same table
      ASSERT_EQ(std::memcmp(own.memory.data(), f.memory.data(), own.memory.size()), 0) << ops->name;
      EXPECT_EQ(std::memcmp(own.run(*ops, first, tokens).data(), want.data(), want.size() * 4), 0) << ops->name << " at " << first;
      EXPECT_EQ(std::memcmp(own.run_apart(*ops, first, tokens).data(), want.data(), want.size() * 4), 0) << ops->name << " apart, at " << first;
      for (int t = 0; t < tokens; t += 3) {
        const auto alone = own.run(*ops, first + t, 1);
        ASSERT_EQ(std::memcmp(alone.data(), &want[static_cast<size_t>(t) * row], row * 4), 0) << ops->name << " token " << first + t;
      }
    }
  }
}

// Sequences that share the blocks of a split: their tokens stand in one item, and each gets what it gets alone.
TEST_P(Attention, TokensOfSeveralSequencesOverSharedBlocks) {
  FlushDenormals flushed;
  const Case c = GetParam();
  if (c.positions <= 2 * kSplit || c.window > 0) GTEST_SKIP() << "needs two whole splits that all tokens see";
  const Fixture f(c, best_ops());
  const size_t floats = attention_state_floats(c.head_dim), stride = 2 * floats, token = stride * static_cast<size_t>(c.group);
  const std::vector<int> positions = {2 * kSplit + 1, c.positions - 1, 2 * kSplit, c.positions - 7, 2 * kSplit + 9};
  const int most = std::min(static_cast<int>(positions.size()), kMaxQueries / c.group);
  for (const Ops* ops : ops_here())
    for (int n = 1; n <= most; n++) {
      std::vector<float> together(token * static_cast<size_t>(n)), alone(token);
      std::vector<AttentionToken> tokens;
      for (int t = 0; t < n; t++) {
        const int position = positions[static_cast<size_t>(t)];
        tokens.push_back({&f.queries[static_cast<size_t>(position * c.group * c.head_dim)], &together[token * static_cast<size_t>(t)], position});
      }
      ops->attend({tokens.data(), n, c.group, stride, 0, f.blocks.data(), f.kv}, 0, 2, false);
      for (int t = 0; t < n; t++) {
        f.attend(best_ops(), positions[static_cast<size_t>(t)], 1, 0, 2, false, alone.data(), stride);
        ASSERT_EQ(std::memcmp(alone.data(), &together[token * static_cast<size_t>(t)], token * 4), 0) << ops->name << ", token " << t << " of " << n;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         testing::Values(Case{8, 2, 40, 0, KvType::f32}, Case{64, 3, 700, 0, KvType::f16}, Case{64, 4, 700, 0, KvType::f32},
                                         Case{256, 4, 600, 512, KvType::f16}, Case{64, 1, 700, 100, KvType::f16},
                                         Case{24, 7, 300, 16, KvType::f32}, Case{128, 8, 530, 0, KvType::f16},
                                         Case{64, 3, 700, 0, KvType::bf16}, Case{40, 2, 300, 100, KvType::bf16}, Case{128, 8, 530, 0, KvType::bf16}, Case{7, 5, 300, 0, KvType::bf16},
                                         Case{64, 3, 700, 0, KvType::q8_0}, Case{96, 5, 600, 300, KvType::q8_0}, Case{40, 2, 300, 0, KvType::q8_0}),
                         [](const auto& t) {
                           const Case& c = t.param;
                           return "dim" + std::to_string(c.head_dim) + "_group" + std::to_string(c.group) + "_window" +
                                  std::to_string(c.window) + kTypeNames[static_cast<size_t>(c.type)];
                         });

}  // namespace
}  // namespace unisono::kernels
