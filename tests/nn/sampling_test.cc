#include "src/nn/sampling.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

std::span<const float> view(const std::vector<float>& logits) { return logits; }

std::vector<double> frequencies(const std::vector<float>& logits, const SamplingOptions& options,
                                int draws) {
  std::vector<double> count(logits.size());
  for (int i = 0; i < draws; ++i) {
    count[static_cast<std::size_t>(sample_token(view(logits), options, i))] += 1.0 / draws;
  }
  return count;
}

TEST(Sampling, TemperatureZeroTakesTheMostLikelyAndTheFirstAmongEquals) {
  SamplingOptions options;
  options.temperature = 0;
  EXPECT_EQ(sample_token(view({1, 3, 2}), options, 0), 1);
  EXPECT_EQ(sample_token(view({1, 3, 3}), options, 7), 1);
}

TEST(Sampling, FollowsTheSoftmax) {
  const std::vector<float> logits{0, 1, 2, -1};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SamplingOptions options;
    options.temperature = temperature;
    const std::vector<double> seen = frequencies(logits, options, 40000);
    double sum = 0;
    for (const float x : logits) {
      sum += std::exp(static_cast<double>(x) / temperature);
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(seen[i], std::exp(static_cast<double>(logits[i]) / temperature) / sum, 0.01);
    }
  }
}

TEST(Sampling, TopKAndTopPKeepTheHead) {
  const std::vector<float> logits{0, 1, 2, 3};  // probabilities .03 .09 .24 .64
  SamplingOptions options;
  options.top_k = 2;
  std::vector<double> seen = frequencies(logits, options, 5000);
  EXPECT_EQ(seen[0] + seen[1], 0);
  EXPECT_NEAR(seen[3], 1 / (1 + std::exp(-1.0)), 0.03);
  options = {};
  options.top_p = 0.9;  // .64 + .24 < .9, so the third is needed
  seen = frequencies(logits, options, 5000);
  EXPECT_EQ(seen[0], 0);
  EXPECT_GT(seen[1], 0);
  options.top_p = 0.5;
  seen = frequencies(logits, options, 100);
  EXPECT_DOUBLE_EQ(seen[3], 1);
}

TEST(Sampling, IsAPureFunctionOfSeedAndPosition) {
  const std::vector<float> logits(100, 0);
  SamplingOptions options;
  std::set<std::int32_t> at_positions;
  std::set<std::int32_t> of_seeds;
  for (int i = 0; i < 50; ++i) {
    options.seed = 4;
    const std::int32_t token = sample_token(view(logits), options, i);
    EXPECT_EQ(token, sample_token(view(logits), options, i));
    at_positions.insert(token);
    options.seed = static_cast<std::uint64_t>(i);
    of_seeds.insert(sample_token(view(logits), options, 3));
  }
  EXPECT_GT(at_positions.size(), 20U);
  EXPECT_GT(of_seeds.size(), 20U);
}

TEST(Sampling, LivesWithInfinitiesAndRefusesOnlyNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SamplingOptions options;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(sample_token(view({nan, -infinity, 1, -infinity}), options, i), 2);
    EXPECT_EQ(sample_token(view({0, infinity, 1}), options, i), 1);
  }
  EXPECT_THROW(sample_token(view({nan, nan}), options, 0), DataError);
}

TEST(Sampling, RefusesOptionsThatMeanNothing) {
  SamplingOptions options;
  EXPECT_NO_THROW(options.validate());
  options.temperature = -1;
  EXPECT_THROW(options.validate(), ConfigError);
  options = {};
  options.top_k = -1;
  EXPECT_THROW(options.validate(), ConfigError);
  for (const double p : {0.0, 1.1, std::nan("")}) {
    options = {};
    options.top_p = p;
    EXPECT_THROW(options.validate(), ConfigError);
  }
}

}  // namespace
}  // namespace trireme
