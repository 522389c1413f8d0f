#include "benchmarks/sampling.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/thread/thread_world.h"

namespace trireme {
namespace {

std::size_t samples_of(const StopRule& rule, const std::vector<double>& values) {
  std::vector<double> taken;
  for (Sampling sampling(rule); sampling.more(taken);) {
    taken.push_back(values[taken.size() % values.size()]);
  }
  return taken.size();
}

TEST(Sampling, TakesTheNumberThatWasAsked) {
  EXPECT_EQ(samples_of(StopRule::count_or_duration(7, 0), {1, 100}), 7U);
}

TEST(Sampling, StopsWhenTheMedianIsKnown) {
  const StopRule rule{.least = 6, .most = 100, .seconds = 0, .precision = 0.05};
  EXPECT_EQ(samples_of(rule, {1.0, 1.01}), 6U);
  EXPECT_EQ(samples_of(rule, {1.0, 2.0}), 100U);
  EXPECT_EQ(samples_of(rule, {0.0}), 6U);
}

TEST(Sampling, TakesAtLeastThreeSamplesInADuration) {
  Sampling sampling(StopRule::count_or_duration(1000, 1e-9));
  EXPECT_TRUE(sampling.more(0U));
  EXPECT_TRUE(sampling.more(2U));
  EXPECT_FALSE(sampling.more(3U));
  Sampling longer(StopRule::count_or_duration(1, 3600));
  EXPECT_TRUE(longer.more(1000U));
}

// Ranks that stopped at different samples would wait for each other for ever.
TEST(Sampling, RanksStopTogether) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    std::int64_t count = 0;
    const auto rule = StopRule::count_or_duration(1, 0.02);
    for (Sampling sampling(rule, &comm); sampling.more(static_cast<std::size_t>(count)); ++count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank()));
    }
    EXPECT_EQ(all_reduce_value(comm, count, ReduceOp::min), count);
  });
}

TEST(Samples, KeepWhatEachRankMeasured) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    const std::vector<double> own =
        comm.rank() == 0 ? std::vector<double>{1, 5, 2} : std::vector<double>{3, 4, 2};
    const auto by_rank = gather_by_rank(comm, own);
    EXPECT_EQ(by_rank, (std::vector<std::vector<double>>{{1, 5, 2}, {3, 4, 2}}));
    EXPECT_EQ(slowest(by_rank), (std::vector<double>{3, 5, 2}));
    EXPECT_EQ(sums(by_rank), (std::vector<double>{4, 9, 4}));
  });
}

TEST(Samples, DescribeThemselves) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto json = samples_json({3, 1, 2.123456789012}, {{none, 1, 2}});
  EXPECT_EQ(json.at("median"), 2.12345679);
  EXPECT_EQ(json.at("low"), 1.0);
  EXPECT_EQ(json.at("high"), 3.0);
  EXPECT_TRUE(json.at("by_rank")[0][0].is_null());
  EXPECT_TRUE(samples_json({1}, {}).at("by_rank").is_null());
  EXPECT_EQ(samples_json({0, 0, 0}).at("high"), 0.0);
}

}  // namespace
}  // namespace trireme
