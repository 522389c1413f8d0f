#include "src/interchange/pruning.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Numbers with many equal magnitudes and zeros of both signs.
std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(count);
  for (float& each : x) {
    each = static_cast<float>(static_cast<int>(random() % 41) - 20) *
           (random() % 5 == 0 ? 1e-9F : 0.25F);
  }
  return x;
}

// Sorts the numbers by magnitude, and equal ones by their place.
std::vector<float> expected_of(std::vector<float> x, std::int64_t zeros) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(x[a]) < std::abs(x[b]); });
  for (std::int64_t i = 0; i < zeros; ++i) {
    x[order[static_cast<std::size_t>(i)]] = 0;
  }
  return x;
}

TEST(Pruning, ZeroesTheSmallestAndOfEqualOnesTheFirst) {
  for (const std::size_t count : {1U, 2U, 7U, 1000U}) {
    for (const double share : {0.0, 0.1, 0.5, 0.9, 1.0}) {
      const auto zeros = static_cast<std::int64_t>(share * static_cast<double>(count));
      const std::vector<float> x = numbers(count, static_cast<unsigned>(count));
      std::vector<float> pruned = x;
      prune_smallest(pruned.data(), std::ssize(pruned), zeros);
      EXPECT_EQ(pruned, expected_of(x, zeros)) << count << " " << zeros;
    }
  }
  std::vector<float> equal(8, -0.5F);
  prune_smallest(equal.data(), 8, 3);
  EXPECT_EQ(equal, (std::vector<float>{0, 0, 0, -0.5F, -0.5F, -0.5F, -0.5F, -0.5F}));
}

TEST(Pruning, TellsMagnitudesApartByTheirLastBit) {
  std::vector<float> x(100);
  float next = 1;
  for (float& each : x) {
    each = next;
    next = std::nextafter(next, 0.0F);
  }
  const std::vector<float> before = x;
  prune_smallest(x.data(), std::ssize(x), 30);
  EXPECT_EQ(x, expected_of(before, 30));
  EXPECT_EQ(std::count(x.begin(), x.end(), 0.0F), 30);
}

TEST(Pruning, KeepsTwoOfFourAlongTheInputs) {
  std::vector<float> along_rows = {1, -3, 2, 0.5F, 4, 4, -4, 4};
  prune_by_pattern(along_rows.data(), 2, 4, false);
  EXPECT_EQ(along_rows, (std::vector<float>{0, -3, 2, 0, 0, 0, -4, 4}));
  std::vector<float> along_columns = {1, 9, 5, -8, 4, 7, 2, 6, 0, -5, 3, 4, 0, 1, 0, 2};
  prune_by_pattern(along_columns.data(), 8, 2, true);
  EXPECT_EQ(along_columns, (std::vector<float>{0, 9, 5, -8, 4, 0, 0, 0, 0, -5, 3, 4, 0, 0, 0, 0}));
}

TEST(Pruning, EachGroupOfALargeMatrixKeepsItsTwoLargest) {
  constexpr std::int64_t kRows = 24;
  constexpr std::int64_t kColumns = 40;
  const std::vector<float> x = numbers(kRows * kColumns, 3);
  for (const bool down : {false, true}) {
    std::vector<float> pruned = x;
    prune_by_pattern(pruned.data(), kRows, kColumns, down);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t column = 0; column < kColumns; ++column) {
        const std::int64_t stride = down ? kColumns : 1;
        const std::int64_t at = row * kColumns + column;
        if ((down ? row : column) % 4 != 0) {
          continue;
        }
        std::vector<float> group;
        std::vector<float> found;
        for (std::int64_t i = 0; i < 4; ++i) {
          group.push_back(x[static_cast<std::size_t>(at + i * stride)]);
          found.push_back(pruned[static_cast<std::size_t>(at + i * stride)]);
        }
        ASSERT_EQ(found, expected_of(group, 2)) << down << " " << row << " " << column;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
