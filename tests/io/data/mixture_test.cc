#include "io/data/mixture.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::ElementsAre;

Mixture mixed(const std::vector<MixtureWeights>& phases) { return Mixture(phases); }

std::vector<std::size_t> sources_of(const Mixture& mixture, std::int64_t first, std::int64_t end) {
  std::vector<std::size_t> sources;
  for (std::int64_t n = first; n < end; ++n) {
    sources.push_back(mixture(n).source);
  }
  return sources;
}

TEST(Mixture, OneSourceHasAllSamples) {
  const Mixture mixture;
  EXPECT_EQ(mixture.sources(), 1U);
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 62}) {
    EXPECT_EQ(mixture(n), (MixturePlace{0, n}));
    EXPECT_EQ(mixture.count(0, n), n);
  }
}

// Worked out by hand: of the first n samples, round(3n/8) come from the first source.
TEST(Mixture, HasTheOrderOfTheComment) {
  const Mixture mixture = mixed({{0, {3, 1, 4}}});
  EXPECT_THAT(sources_of(mixture, 0, 8), ElementsAre(2, 0, 2, 0, 1, 2, 0, 2));
  EXPECT_EQ(sources_of(mixture, 8, 16), sources_of(mixture, 0, 8));
}

// Every source gives its samples 0, 1, 2, ... in turn, count() agrees with them, and the shares are
// exact at multiples of the sum of the weights and near them in between.
TEST(Mixture, SharesAreExact) {
  for (const std::vector<std::int64_t>& weights : {std::vector<std::int64_t>{1, 1},
                                                   {7, 2, 1},
                                                   {1, 0, 5},
                                                   {1, 1000, 3, 17, 2},
                                                   {4, 2, 2},
                                                   {999999999, 1},
                                                   {3, 3, 3, 3, 3, 3, 3}}) {
    const Mixture mixture = mixed({{0, weights}});
    const auto sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    const double levels = std::ceil(std::log2(static_cast<double>(weights.size())));
    std::vector<std::int64_t> taken(weights.size(), 0);
    for (std::int64_t n = 0; n < 3000; ++n) {
      for (std::size_t source = 0; source < weights.size(); ++source) {
        ASSERT_EQ(mixture.count(source, n), taken[source]) << n;
        const double exact = static_cast<double>(n) * static_cast<double>(weights[source]) /
                             static_cast<double>(sum);
        ASSERT_LE(std::abs(static_cast<double>(taken[source]) - exact), levels / 2) << n;
        ASSERT_TRUE(n % sum != 0 || taken[source] == n / sum * weights[source]) << n;
      }
      const MixturePlace place = mixture(n);
      ASSERT_EQ(place.number, taken[place.source]++) << n;
    }
  }
}

TEST(Mixture, FarSamplesDoNotOverflow) {
  const std::int64_t weight = (std::int64_t{1} << 61) - 1;  // prime
  const Mixture mixture = mixed({{0, {weight, weight - 1}}});
  const std::int64_t far = std::int64_t{1} << 62;
  EXPECT_EQ(mixture.count(0, far) + mixture.count(1, far), far);
  const MixturePlace place = mixture(far);
  EXPECT_EQ(mixture.count(place.source, far), place.number);
  EXPECT_EQ(mixture.count(place.source, far + 1), place.number + 1);
}

TEST(Mixture, WeightsMayChange) {
  const Mixture mixture = mixed({{0, {1, 0, 1}}, {10, {0, 1, 0}}, {16, {2, 1, 1}}});
  EXPECT_THAT(sources_of(mixture, 0, 4), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(sources_of(mixture, 10, 16), testing::Each(1U));
  EXPECT_EQ(mixture(10), (MixturePlace{1, 0}));
  std::vector<std::int64_t> taken(3, 0);
  for (std::int64_t n = 0; n < 40; ++n) {
    const MixturePlace place = mixture(n);
    ASSERT_EQ(place.number, taken[place.source]++) << "every source continues where it stopped";
  }
  EXPECT_EQ(mixture.count(0, 20), 5 + 2);
  EXPECT_EQ(mixture.count(1, 20), 6 + 1);
}

TEST(Mixture, ImpossibleWeightsAreDefects) {
  EXPECT_THROW((void)mixed({}), InternalError);
  EXPECT_THROW((void)mixed({{0, {}}}), InternalError);
  EXPECT_THROW((void)mixed({{0, {0, 0}}}), InternalError);
  EXPECT_THROW((void)mixed({{0, {1, -1}}}), InternalError);
  EXPECT_THROW((void)mixed({{1, {1}}}), InternalError);
  EXPECT_THROW((void)mixed({{0, {1, 2}}, {0, {1, 2}}}), InternalError);
  EXPECT_THROW((void)mixed({{0, {1, 2}}, {5, {1}}}), InternalError);
  const std::int64_t most = std::int64_t{1} << 61;
  EXPECT_THROW((void)mixed({{0, {most, most - 1, 2}}}), InternalError);
  EXPECT_THROW((void)Mixture()(-1), InternalError);
}

}  // namespace
}  // namespace trireme
