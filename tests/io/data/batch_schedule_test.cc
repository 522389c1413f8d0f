#include "io/data/batch_schedule.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(BatchSchedule, WithoutARampAllBatchesAreAlike) {
  for (const BatchSchedule& batches : {BatchSchedule(7), BatchSchedule(7, BatchRamp{})}) {
    EXPECT_EQ(batches.stages(), 1);
    EXPECT_EQ(batches.first_batch(0), 0);
    for (const std::int64_t number : {0, 1, 100}) {
      EXPECT_EQ(batches.size_of(number), 7);
      EXPECT_EQ(batches.before(number), 7 * number);
    }
  }
}

TEST(BatchSchedule, RisesStageByStage) {
  const BatchSchedule batches(14, {4, 4, 10});
  EXPECT_EQ(batches.stages(), 4);
  EXPECT_EQ(batches.full(), 14);
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {
      {0, 4}, {9, 4}, {10, 8}, {19, 8}, {20, 12}, {29, 12}, {30, 14}, {31, 14}, {4'000'000, 14}};
  for (const auto& [number, size] : sizes) {
    EXPECT_EQ(batches.size_of(number), size) << number;
  }
  EXPECT_EQ(batches.before(30), 240);
  EXPECT_EQ(batches.before(31), 254);
}

// Compares every small ramp with the sum of its batches, and checks that no batch is smaller than
// the one before.
TEST(BatchSchedule, CountsWhatItsBatchesHave) {
  for (std::int64_t full = 1; full <= 9; ++full) {
    for (std::int64_t from = 1; from <= full; ++from) {
      for (std::int64_t by = 1; by <= 10; ++by) {
        for (std::int64_t every = 1; every <= 4; ++every) {
          const BatchSchedule batches(full, {from, by, every});
          std::int64_t size = from;
          std::int64_t before = 0;
          for (std::int64_t number = 0; number < 45; ++number) {
            size = number > 0 && number % every == 0 ? std::min(size + by, full) : size;
            ASSERT_EQ(batches.size_of(number), size) << from << " " << by << " " << every;
            ASSERT_EQ(batches.before(number), before) << from << " " << by << " " << every;
            before += size;
          }
          const std::int64_t last = batches.stages() - 1;
          EXPECT_EQ(batches.size_of_stage(last), full);
          EXPECT_EQ(batches.size_of(batches.first_batch(last)), full);
          EXPECT_TRUE(last == 0 || batches.size_of(batches.first_batch(last) - 1) < full);
        }
      }
    }
  }
}

TEST(BatchSchedule, NamesTheFirstStageThatIsNoMultiple) {
  for (std::int64_t full = 1; full <= 16; ++full) {
    for (std::int64_t from = 1; from <= full; ++from) {
      for (std::int64_t by = 1; by <= 8; ++by) {
        for (const std::int64_t unit : {1, 2, 3, 4}) {
          const BatchSchedule batches(full, {from, by, 2});
          const auto is_odd = [&](std::int64_t stage) {
            return batches.size_of_stage(stage) % unit != 0;
          };
          const auto odd = batches.stage_not_multiple_of(unit);
          std::int64_t first = 0;
          while (first < batches.stages() && !is_odd(first)) {
            ++first;
          }
          ASSERT_EQ(odd.has_value(), first < batches.stages());
          ASSERT_EQ(odd.value_or(first), first) << from << " " << by << " " << full << " " << unit;
        }
      }
    }
  }
}

TEST(BatchSchedule, CountsAsFarAsItsNumbersGo) {
  const BatchSchedule batches(std::int64_t{1} << 30, {1, 1, 1});
  EXPECT_EQ(batches.stages(), std::int64_t{1} << 30);
  EXPECT_TRUE(batches.has_room_for(std::int64_t{1} << 32));
  EXPECT_FALSE(batches.has_room_for(std::int64_t{1} << 33));
  constexpr std::int64_t kStages = std::int64_t{1} << 30;
  EXPECT_EQ(batches.before(kStages), kStages / 2 * (kStages + 1));
  EXPECT_EQ(batches.before(std::int64_t{1} << 32),
            kStages / 2 * (kStages + 1) + 3 * kStages * kStages);
  EXPECT_EQ(BatchSchedule(kMost).before(1), kMost);
  EXPECT_EQ(BatchSchedule(kMost, {1, kMost, kMost}).size_of(kMost - 1), 1);
}

TEST(BatchSchedule, RefusesWhatDoesNotRise) {
  for (const BatchRamp& ramp : {BatchRamp{9, 1, 1}, BatchRamp{1, 0, 1}, BatchRamp{1, 1, 0}}) {
    EXPECT_THROW(BatchSchedule(8, ramp), InternalError);
  }
}

}  // namespace
}  // namespace trireme
