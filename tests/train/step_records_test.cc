#include "src/train/recovery/step_records.h"

#include <cmath>

#include <gtest/gtest.h>

namespace trireme {
namespace {

const std::vector<std::int64_t> kNumbers = {4, 5};

StepRecord record(std::int64_t step) { return {step, 2.5, 1.25, {{3, 4}, {7, 8}}}; }

TEST(StepRecords, TheSameBitsDifferInNothing) {
  StepRecord nan = record(1);
  nan.loss = std::nan("");
  nan.bits.losses[0] = std::nan("");
  for (const StepRecord& each : {record(1), nan}) {
    EXPECT_EQ(difference(each, each, kNumbers), "");
    EXPECT_EQ(difference_of_sums(each, each), "");
  }
}

TEST(StepRecords, SayWhatDiffers) {
  StepRecord again = record(1);
  again.bits.losses[1] = std::nextafter(4, 5);
  EXPECT_EQ(difference(record(1), again, kNumbers),
            "the loss of micro-batch 5 was 4 and is now 4.000000000000001");
  EXPECT_EQ(difference_of_sums(record(1), again), "");
  again = record(1);
  again.bits.digests[0] = 9;
  EXPECT_EQ(difference(record(1), again, kNumbers),
            "the gradient of micro-batch 4 has different bits");
  again = record(1);
  again.grad_norm = std::nan("");
  EXPECT_EQ(difference_of_sums(record(1), again), "the gradient norm was 1.25 and is now nan");
  again.loss = -0.0;
  EXPECT_EQ(difference_of_sums(record(1), again), "the loss was 2.5 and is now -0");
  again = record(1);
  again.bits.digests.clear();
  StepRecord first = again;
  first.bits.losses[0] = -first.bits.losses[0];
  EXPECT_EQ(difference(first, again, kNumbers), "the loss of micro-batch 4 was -3 and is now 3");
}

TEST(StepRecords, KeepTheNewest) {
  StepRecords records(3);
  for (std::int64_t step = 1; step <= 5; ++step) {
    records.add(record(step));
  }
  EXPECT_EQ(records.find(2), nullptr);
  ASSERT_NE(records.find(3), nullptr);
  EXPECT_EQ(records.find(5)->step, 5);
  EXPECT_EQ(records.find(6), nullptr);
  // The run went back, so the later records are of abandoned steps.
  records.add(record(4));
  EXPECT_NE(records.find(3), nullptr);
  EXPECT_NE(records.find(4), nullptr);
  EXPECT_EQ(records.find(5), nullptr);
}

TEST(StepRecords, KeepNothingIfNotAsked) {
  StepRecords records(0);
  records.add(record(1));
  EXPECT_EQ(records.find(1), nullptr);
}

}  // namespace
}  // namespace trireme
