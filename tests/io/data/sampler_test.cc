#include "io/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "io/data/feistel_permutation.h"
#include "src/base/error.h"

namespace trireme {
namespace {

std::vector<std::int64_t> epoch(const Sampler& sampler, std::int64_t number) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < sampler.samples(); ++i) {
    order.push_back(sampler.at(number, i));
  }
  return order;
}

bool visits_each_once(std::vector<std::int64_t> order) {
  std::vector<std::int64_t> all(order.size());
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(order);
  return order == all;
}

TEST(FeistelTest, IsAPermutationWithAnInverseForEverySmallSize) {
  for (std::int64_t n = 1; n <= 600; ++n) {
    for (const std::uint64_t key : {0ULL, 1ULL, 0x123456789ABCDEFULL}) {
      const FeistelPermutation permutation(n, key);
      std::vector<std::int64_t> order;
      for (std::int64_t i = 0; i < n; ++i) {
        order.push_back(permutation(i));
        ASSERT_EQ(permutation.inverse(order.back()), i) << n;
      }
      ASSERT_TRUE(visits_each_once(order)) << n;
    }
  }
}

TEST(FeistelTest, LargeDomainsInvert) {
  for (const std::int64_t n : {(std::int64_t{1} << 40) - 1, (std::int64_t{1} << 40) + 1,
                               std::int64_t{4'611'686'018'427'387'905}}) {
    const FeistelPermutation permutation(n, 9);
    for (std::int64_t i = 0; i < n; i += n / 97) {
      const std::int64_t j = permutation(i);
      ASSERT_GE(j, 0);
      ASSERT_LT(j, n);
      ASSERT_EQ(permutation.inverse(j), i);
    }
  }
}

// Checks by chi-square where the first and the last element go over many keys; 99.99 % of fair
// shuffles stay below the limit.
TEST(FeistelTest, SpreadsEvenlyOverKeys) {
  for (const std::int64_t n : {7, 16, 100}) {
    constexpr std::int64_t kKeys = 20000;
    for (const std::int64_t element : {std::int64_t{0}, n - 1}) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(n));
      for (std::int64_t key = 0; key < kKeys; ++key) {
        const FeistelPermutation permutation(n, mix64(static_cast<std::uint64_t>(key)));
        ++counts[static_cast<std::size_t>(permutation(element))];
      }
      const double expected = static_cast<double>(kKeys) / static_cast<double>(n);
      double chi_square = 0;
      for (const std::int64_t count : counts) {
        const double off = static_cast<double>(count) - expected;
        chi_square += off * off / expected;
      }
      const double freedom = static_cast<double>(n - 1);
      EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom) + 8) << n << " " << element;
    }
  }
}

// Neighbouring elements must not stay neighbours.
TEST(FeistelTest, TearsNeighboursApart) {
  constexpr std::int64_t kSize = 10000;
  const FeistelPermutation permutation(kSize, 12345);
  std::int64_t close = 0;
  for (std::int64_t i = 0; i + 1 < kSize; ++i) {
    close += std::abs(permutation(i) - permutation(i + 1)) <= 10 ? 1 : 0;
  }
  // About 20 of 10,000 pairs are that close by chance.
  EXPECT_LT(close, 60);
}

TEST(SamplerTest, EveryEpochVisitsEverySampleOnce) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::block, Shuffle::global}) {
    for (const std::int64_t block : {1, 3, 8, 1000}) {
      for (std::int64_t n = 1; n <= 300; ++n) {
        const Sampler sampler(n, block, shuffle, 7);
        ASSERT_TRUE(visits_each_once(epoch(sampler, 0))) << n << " in blocks of " << block;
        ASSERT_TRUE(visits_each_once(epoch(sampler, 3))) << n << " in blocks of " << block;
      }
    }
  }
}

TEST(SamplerTest, TheNumberGoesOnThroughEpochs) {
  const Sampler sampler(37, 4, Shuffle::block, 5);
  for (std::int64_t n = 0; n < 120; ++n) {
    EXPECT_EQ(sampler(n), sampler.at(n / 37, n % 37));
  }
}

TEST(SamplerTest, SeedsAndEpochsDiffer) {
  for (const Shuffle shuffle : {Shuffle::block, Shuffle::global}) {
    const Sampler a(1000, 10, shuffle, 1);
    const Sampler b(1000, 10, shuffle, 2);
    EXPECT_EQ(epoch(a, 0), epoch(Sampler(1000, 10, shuffle, 1), 0));
    EXPECT_NE(epoch(a, 0), epoch(b, 0));
    EXPECT_NE(epoch(a, 0), epoch(a, 1));
  }
}

// A change here would change the sample order of every resumed run. sampler_golden.py computes the
// values independently.
TEST(SamplerTest, TheOrderIsFrozen) {
  const auto probe = [](Shuffle shuffle) {
    const Sampler sampler(1003, 10, shuffle, 1);
    return std::vector{sampler(0), sampler(1), sampler(500), sampler(1002), sampler(1003)};
  };
  EXPECT_EQ(probe(Shuffle::block), (std::vector<std::int64_t>{511, 938, 571, 804, 47}));
  EXPECT_EQ(probe(Shuffle::global), (std::vector<std::int64_t>{349, 854, 603, 720, 369}));
}

// Reads within one window touch 16 blocks, or 17 if the short block has shifted them.
TEST(SamplerTest, BlockShuffleKeepsReadsTogether) {
  constexpr std::int64_t kBlock = 50;
  constexpr std::int64_t kWindow = 16 * kBlock;
  const Sampler sampler(100 * kBlock + 7, kBlock, Shuffle::block, 3);
  for (std::int64_t first = 0; first + kWindow <= sampler.samples(); first += kWindow) {
    std::set<std::int64_t> blocks;
    for (std::int64_t i = 0; i < kWindow; ++i) {
      blocks.insert(sampler.at(0, first + i) / kBlock);
    }
    EXPECT_LE(blocks.size(), 17);
  }
}

TEST(SamplerTest, WordsAreParsed) {
  EXPECT_EQ(parse_shuffle("block"), Shuffle::block);
  EXPECT_EQ(parse_shuffle("global"), Shuffle::global);
  EXPECT_EQ(parse_shuffle("none"), Shuffle::none);
  EXPECT_THROW(parse_shuffle("random"), ConfigError);
  EXPECT_EQ(shuffle_block_samples(1024, 2), 4096);
  EXPECT_EQ(shuffle_block_samples(1 << 30, 4), 1);
}

}  // namespace
}  // namespace trireme
