#include "decode/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "decode/rows.h"

namespace unisono::decode {
namespace {

// Everything that can be selected, by a full sort.
std::vector<Scored> sorted(const std::vector<float>& row) {
  std::vector<Scored> all;
  for (size_t i = 0; i < row.size(); i++)
    if (row[i] > -INFINITY) all.push_back({row[i], static_cast<int32_t>(i)});
  std::sort(all.begin(), all.end(), better);
  return all;
}

std::vector<int32_t> ids(std::vector<Scored> entries, size_t n) {
  entries.resize(std::min(n, entries.size()));
  std::vector<int32_t> out;
  for (const Scored& e : entries) out.push_back(e.id);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Select, EqualsAFullSort) {
  std::mt19937 rng(1);
  std::vector<Scored> out;
  for (int round = 0; round < 600; round++) {
    const size_t n = 1 + rng() % 700;
    auto row = random_row(rng, n, 3, round % 2 == 0, round % 3 == 0);
    if (round % 5 == 0) std::sort(row.begin(), row.end(), [](float a, float b) { return !(a >= b) && !std::isnan(b); });
    const auto truth = sorted(row);
    EXPECT_EQ(best(row).id, truth.empty() ? -1 : truth[0].id);
    for (const size_t k : {size_t{0}, size_t{1}, size_t{5}, size_t{40}, size_t{300}, n, 2 * n}) {
      select_best(row, k, out);
      ASSERT_EQ(ids(out, out.size()), ids(truth, k)) << "n " << n << " k " << k;
    }
  }
}

TEST(Select, NothingToSelect) {
  std::vector<Scored> out{{1, 1}};
  EXPECT_EQ(best({}).id, -1);
  const std::vector<float> row{NAN, -INFINITY, NAN};
  EXPECT_EQ(best(row).id, -1);
  select_best(row, 2, out);
  EXPECT_TRUE(out.empty());
}

TEST(Select, InfinityIsTheBest) {
  const std::vector<float> row{1, INFINITY, NAN, INFINITY};
  EXPECT_EQ(best(row).id, 1);
}

}  // namespace
}  // namespace unisono::decode
