#include "benchmarks/p2p/pair_matrix.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/tournament.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(Tournament, AllMeetOnceAndNobodyTwiceAtATime) {
  for (const int n : {0, 1, 2, 3, 4, 5, 8, 13}) {
    std::set<std::pair<int, int>> met;
    const auto rounds = tournament(n);
    EXPECT_LE(static_cast<int>(rounds.size()), n % 2 == 0 ? std::max(n - 1, 0) : n);
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
        EXPECT_TRUE(met.emplace(a, b).second);
      }
    }
    EXPECT_EQ(static_cast<int>(met.size()), n * (n - 1) / 2);
  }
}

// Returns bandwidths of 10 GB/s with a little scatter.
PairMatrix healthy(int n) {
  PairMatrix matrix(n);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      matrix.at(a, b) = 10e9 + 1e8 * ((a * 7 + b * 3) % 5 - 2);
    }
  }
  return matrix;
}

TEST(PairMatrix, ASlowPairIsAnOutlier) {
  PairMatrix matrix = healthy(4);
  EXPECT_TRUE(outliers(matrix).empty());
  matrix.at(1, 3) = 1e9;
  const auto slow = outliers(matrix);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].from, 1);
  EXPECT_EQ(slow[0].to, 3);
  EXPECT_LT(slow[0].score, -20);
  EXPECT_FALSE(common_member(slow));  // either member may be the culprit
}

TEST(PairMatrix, TheNodeInAllSlowPairsIsNamed) {
  PairMatrix matrix = healthy(6);
  for (int other = 0; other < 6; ++other) {
    if (other != 4) {
      matrix.at(4, other) = 2e9 + 1e6 * other;
      matrix.at(other, 4) = 3e9;
    }
  }
  const auto failing = below(matrix, 0.8 * 10e9);
  EXPECT_EQ(failing.size(), 10U);
  EXPECT_EQ(failing[0].from, 4);
  EXPECT_EQ(failing[0].to, 0);
  EXPECT_EQ(common_member(failing), 4);
  matrix.at(0, 1) = 1e9;
  EXPECT_EQ(common_member(below(matrix, 8e9)), std::nullopt);
}

TEST(PairMatrix, BothDirectionsOfOnePairNameNobody) {
  PairMatrix matrix = healthy(4);
  matrix.at(1, 2) = matrix.at(2, 1) = 1e9;
  EXPECT_EQ(common_member(below(matrix, 8e9)), std::nullopt);
  EXPECT_EQ(common_member({}), std::nullopt);
}

TEST(PairMatrix, Thresholds) {
  EXPECT_DOUBLE_EQ(parse_threshold("0.8").least(10), 8);
  EXPECT_DOUBLE_EQ(parse_threshold("1").least(10), 10);
  EXPECT_DOUBLE_EQ(parse_threshold("2.5GB/s").least(10), 2.5e9);
  for (const char* wrong : {"", "0", "-1", "1.5", "80%", "nan", "inf", "1e999", "2 GB/s", "GB/s",
                            "2GB/sx", "-2GB/s", "infGB/s"}) {
    EXPECT_THROW(parse_threshold(wrong), ConfigError) << wrong;
  }
}

TEST(PairMatrix, TheUnitFitsTheMedian) {
  EXPECT_STREQ(rate_unit(2e11).name, "GB/s");
  EXPECT_STREQ(rate_unit(1e8).name, "GB/s");
  EXPECT_STREQ(rate_unit(9.9e7).name, "MB/s");
  EXPECT_STREQ(rate_unit(5e4).name, "kB/s");  // 8 bytes at a time
  EXPECT_STREQ(rate_unit(0).name, "kB/s");
  EXPECT_EQ(rate_unit(9.9e7).bytes_per_s, 1e6);
}

TEST(PairMatrix, CsvHasAHeaderAndQuotes) {
  PairMatrix matrix(2);
  matrix.at(0, 1) = 1.25;
  matrix.at(1, 0) = 3;
  EXPECT_EQ(matrix_csv(matrix, {0, 5}, {"n1", "a\"b,c"}),
            "from,host,0,5\n0,n1,,1.25\n5,\"a\"\"b,c\",3,\n");
}

TEST(PairMatrix, NoRateLooksLikeZeroInTheTable) {
  EXPECT_EQ(matrix_cell(0), "0.00");
  EXPECT_EQ(matrix_cell(12.345), "12.35");
  EXPECT_EQ(matrix_cell(0.01), "0.01");
  EXPECT_EQ(matrix_cell(0.0049), "0.0049");
  EXPECT_EQ(matrix_cell(3e-5), "3e-05");
  EXPECT_EQ(matrix_cell(-0.002), "-0.002");
  for (double rate = 1e12; rate > 1e-3; rate /= 7) {
    const RateUnit unit = rate_unit(1e9);  // of a table whose other pairs are fast
    EXPECT_GT(std::stod(matrix_cell(rate / unit.bytes_per_s)), 0) << rate;
    EXPECT_LE(matrix_cell(rate / unit.bytes_per_s).size(), 8U) << "the width of a column";
  }
}

}  // namespace
}  // namespace trireme
