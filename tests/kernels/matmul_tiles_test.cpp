// Products on tiles, without a CPU that has them: the arrangement on a model of the instructions, and the instructions
// themselves where each is done by that model. Their bits must be every other table's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/thread_team.h"
#include "kernels/amx.h"
#include "kernels/random.h"
#include "kernels/tile_trap.h"

namespace unisono::kernels {
namespace {

constexpr DType kQuantised[] = {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                                DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k};

// Sizes by hand: signs, which byte meets which, and sums that go on.
TEST(TileModel, MultipliesAsTheManualSays) {
  TileModel tiles;
  TileConfig c;
  c.rows[0] = c.rows[1] = 2;  // sums [2][1], from [2][8 bytes] times [2][1][4 bytes]
  c.rows[2] = 2;
  c.row_bytes[0] = c.row_bytes[2] = 4;
  c.row_bytes[1] = 8;
  tiles.ldtilecfg(c);
  const int8_t a[2][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {-128, 127, -1, 0, 0, 0, 0, -128}};
  const int8_t b[2][4] = {{10, 0, 0, -1}, {0, 100, 0, -128}};
  const int32_t from[2] = {1000, -7};
  int32_t sums[2] = {};
  tiles.tileloadd(0, from, 4);
  tiles.tileloadd(1, a, 8);
  tiles.tileloadd(2, b, 4);
  tiles.tdpbssd(0, 1, 2);
  tiles.tilestored(0, sums, 4);
  EXPECT_EQ(sums[0], 1000 + 10 - 4 + 600 - 1024);
  EXPECT_EQ(sums[1], -7 - 1280 + 16384);
  tiles.tdpbssd(0, 1, 2);
  tiles.tilestored(0, sums, 4);
  EXPECT_EQ(sums[0], 1000 + 2 * (10 - 4 + 600 - 1024));
  tiles.tilerelease();
  EXPECT_FALSE(tiles.configured());
}

TEST(TileModelDeathTest, RefusesWhatTheCpuDoes) {
  EXPECT_DEATH(TileModel().tilezero(0), "configured");
  TileConfig wide = tile_config(32);
  wide.row_bytes[3] = 65;
  EXPECT_DEATH(TileModel().ldtilecfg(wide), "64 bytes");
  TileConfig unfit = tile_config(32);
  unfit.rows[6] = 4;
  EXPECT_DEATH(
      {
        TileModel tiles;
        tiles.ldtilecfg(unfit);
        tiles.tdpbssd(0, 4, 6);
      },
      "shapes");
}

struct Shape {
  int64_t n, k;
};
struct Case {
  Packed w;
  std::vector<QuantBlock> x;
  int rows;
  int64_t ldy;
  std::vector<float> blank() const { return std::vector<float>(static_cast<size_t>(rows * ldy), NAN); }
};
Case make_case(DType type, Shape s, int rows) {
  Case c{pack(random_tensor(type, s.n, s.k, 19)), {}, rows, 0};
  c.ldy = c.w.matrix.panels * kLanes + 16;  // what lies beyond the panels stays
  const auto x = random_floats(static_cast<size_t>(rows * s.k), 23);
  c.x.resize(x.size() / kBlock);
  compiled_ops()[0]->quantise(x.data(), rows * s.k, c.x.data());
  return c;
}
std::vector<float> product(const Case& c, const Ops& ops) {
  auto y = c.blank();
  ops.matmul_int8(c.w.matrix, c.x.data(), c.rows, y.data(), c.ldy, 0, c.w.matrix.panels, {});
  return y;
}
bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

// Rows that fill tiles, that leave one and that leave 15; a panel, a pair, and pairs with one left over.
constexpr int kRows[] = {16, 17, 31, 32, 33, 47, 63, 70};
std::vector<Shape> shapes(DType type) {
  if (info(type).block_elems == 256) return {{16, 256}, {30, 512}, {90, 1280}};
  return {{16, 32}, {33, 96}, {90, 544}, {32, 1056}};
}

class Tiles : public testing::TestWithParam<DType> {};

TEST_P(Tiles, TheArrangementEqualsEveryTable) {
  FlushDenormals flushed;
  for (const Shape s : shapes(GetParam()))
    for (const int rows : kRows) {
      const Case c = make_case(GetParam(), s, rows);
      const int panels = c.w.matrix.panels;
      TileModel tiles;
      auto y = c.blank();
      matmul_on_model(tiles, c.w.matrix, c.x.data(), rows, y.data(), c.ldy, 0, 1);
      matmul_on_model(tiles, c.w.matrix, c.x.data(), rows, y.data(), c.ldy, 1, panels);
      EXPECT_FALSE(tiles.configured());
      EXPECT_GT(tiles.instructions(), 0);
      for (const Ops* ops : ops_here())
        ASSERT_TRUE(equal(y, product(c, *ops))) << ops->name << ", rows " << rows << ", " << s.n << " x " << s.k;
    }
}

// More rows than stay in a cache: they come in pieces.
TEST_P(Tiles, ManyRowsOfManyBlocks) {
  FlushDenormals flushed;
  const Case c = make_case(GetParam(), {48, 8192}, 75);
  TileModel tiles;
  auto y = c.blank();
  matmul_on_model(tiles, c.w.matrix, c.x.data(), c.rows, y.data(), c.ldy, 0, c.w.matrix.panels);
  EXPECT_TRUE(equal(y, product(c, best_ops())));
}

#if defined(__x86_64__)

const Ops* plain() { return find_ops("avx512bf16"); }

// Nothing here asks whether the table runs here: its tile instructions trap.
TEST_P(Tiles, TheInstructionsEqualTheTableTheyStandOn) {
  if (plain() == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  FlushDenormals flushed;
  TileTrap trap;
  for (const Shape s : shapes(GetParam()))
    for (const int rows : {16, 33, 47}) {
      const Case c = make_case(GetParam(), s, rows);
      auto y = c.blank();
      amx::matmul_int8(c.w.matrix, c.x.data(), rows, y.data(), c.ldy, 0, c.w.matrix.panels, {});
      ASSERT_TRUE(equal(y, product(c, *plain()))) << "rows " << rows << ", " << s.n << " x " << s.k;
      EXPECT_FALSE(TileTrap::tiles().configured());
    }
}

TEST_P(Tiles, ThreadsHaveTilesOfTheirOwn) {
  if (plain() == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  TileTrap trap;
  const Case c = make_case(GetParam(), {90, 256}, 40);
  auto y = c.blank();
  ThreadTeam team(3);
  for (int round = 0; round < 3; round++)
    team.run([&](Worker& w) {
      const auto panels = w.share(c.w.matrix.panels);
      amx::matmul_int8(c.w.matrix, c.x.data(), c.rows, y.data(), c.ldy, static_cast<int>(panels.begin),
                       static_cast<int>(panels.end), {});
    });
  FlushDenormals flushed;
  EXPECT_TRUE(equal(y, product(c, *plain())));
}

TEST_P(Tiles, FewRowsNeedNone) {
  if (plain() == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  FlushDenormals flushed;
  TileTrap trap;
  const int64_t before = TileTrap::tiles().instructions();
  const Case c = make_case(GetParam(), {48, 256}, 15);
  auto y = c.blank();
  amx::matmul_int8(c.w.matrix, c.x.data(), c.rows, y.data(), c.ldy, 0, c.w.matrix.panels, {});
  EXPECT_TRUE(equal(y, product(c, *plain())));
  EXPECT_EQ(TileTrap::tiles().instructions(), before);
}

TEST(TileTrap, RunsTheProbe) {
  if (plain() == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  TileTrap trap;
  EXPECT_EQ(amx::probe_int8(3), 3 * 4 * 2.0 * 16 * 16 * 64);
}

// ---- Whether the table is chosen.

bool yes() { return true; }
bool no() { return false; }

// The best table, but wrong in the last bit of one value of the last row.
void wrong_product(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end,
                   Upcoming then) {
  best_ops().matmul_int8(w, x, rows, y, ldy, begin, end, then);
  if (w.type == DType::q6_k) {
    float& one = y[(rows - 1) * ldy + 16 * end - 1];
    one = std::nextafter(one, INFINITY);
  }
}

TEST(JudgeTiles, TakesTilesThatAreEqual) {
  const TileVerdict verdict = judge_tiles({yes, yes}, best_ops(), *compiled_ops()[0]);
  EXPECT_TRUE(verdict.good);
  EXPECT_EQ(verdict.why_not, nullptr);
}
TEST(JudgeTiles, SaysNothingWhereThereAreNone) {
  const TileVerdict verdict = judge_tiles({no, no}, best_ops(), *compiled_ops()[0]);
  EXPECT_FALSE(verdict.good);
  EXPECT_EQ(verdict.why_not, nullptr);
}
TEST(JudgeTiles, SaysThatTheSystemForbidsThem) {
  Ops none = best_ops();
  none.matmul_int8 = nullptr;  // and tries nothing
  const TileVerdict verdict = judge_tiles({yes, no}, none, *compiled_ops()[0]);
  EXPECT_FALSE(verdict.good);
  EXPECT_NE(std::string(verdict.why_not).find("system"), std::string::npos);
}
TEST(JudgeTiles, SeesOneWrongBit) {
  Ops wrong = best_ops();
  wrong.matmul_int8 = wrong_product;
  const TileVerdict verdict = judge_tiles({yes, yes}, wrong, best_ops());
  EXPECT_FALSE(verdict.good);
  EXPECT_NE(std::string(verdict.why_not).find("bits differ"), std::string::npos);
}
TEST(JudgeTiles, TheRealTableStandsTheTrial) {
  if (plain() == nullptr) GTEST_SKIP() << "the rest of the table needs AVX-512 with BF16";
  TileTrap trap;
  Ops table = *plain();
  table.matmul_int8 = amx::matmul_int8;
  EXPECT_TRUE(judge_tiles({yes, yes}, table, *plain()).good);
}
// The machine says the same however often it is asked, and a table that runs is found by name.
TEST(JudgeTiles, ThisMachine) {
  const Ops* table = find_ops("amx");
  EXPECT_EQ(table != nullptr, judge_tiles(this_machine(), *compiled_ops().back(), best_ops()).good && plain() != nullptr);
  EXPECT_STREQ(compiled_ops().back()->name, "amx");
  EXPECT_EQ(&best_ops() == compiled_ops().back(), table != nullptr);
}

#endif

std::string name_of(const testing::TestParamInfo<DType>& type) { return std::string(unisono::info(type.param).name); }

INSTANTIATE_TEST_SUITE_P(Types, Tiles, testing::ValuesIn(kQuantised), name_of);

}  // namespace
}  // namespace unisono::kernels
