#include "benchmarks/table_time.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"

namespace trireme {
namespace {

using testing::ElementsAre;

// A machine on which each row needs so many seconds for its least samples, and then fills its
// share. The clock is a number.
struct SimulatedTable {
  double simulated_seconds = 0;
  std::vector<std::string> measured = {};
  TableTime limit;

  SimulatedTable(double seconds, std::int64_t rows)
      : limit(seconds, rows, [this] { return simulated_seconds; }) {}
  SimulatedTable(const SimulatedTable&) = delete;

  void row(const std::string& name, double work, double least) {
    if (!limit.begins(name, work)) {
      return;
    }
    measured.push_back(name);
    simulated_seconds += least;
    const double spare = std::max(limit.left(), 0.0);
    simulated_seconds += spare;
    limit.ends(spare);
  }
};

TEST(TableTime, RowsShareTheTime) {
  SimulatedTable table(20, 4);
  for (const char* const name : {"1", "2", "3", "4"}) {
    const double before = table.simulated_seconds;
    table.row(name, 1, 0.5);
    EXPECT_NEAR(table.simulated_seconds - before, 5, 0.01);
  }
  EXPECT_NEAR(table.simulated_seconds, 20, 0.1);
  EXPECT_TRUE(table.limit.left_out().empty());
  EXPECT_EQ(table.limit.text(), "");
}

TEST(TableTime, WhatOneTableExceedsIsTakenFromTheNext) {
  EXPECT_EQ(table_seconds(20, 0, 2), 10);
  EXPECT_EQ(table_seconds(20, 14, 1), 6);
  EXPECT_EQ(table_seconds(0, 14, 1), 0) << "no limit";
  EXPECT_GT(table_seconds(20, 25, 1), 0) << "0 would be no limit";
  EXPECT_LT(table_seconds(20, 25, 1), 0.01);
}

// On a machine where even the least of a row takes longer than its share, the whole time holds.
TEST(TableTime, RowsWithoutTimeAreLeftOutAndNamed) {
  SimulatedTable table(20, 23);
  for (int i = 0; i < 23; ++i) {
    table.row(std::to_string(1 << i), 1, 3);
  }
  EXPECT_LE(table.simulated_seconds, 20.1);
  EXPECT_THAT(table.measured, ElementsAre("1", "2", "4", "8", "16", "32"));
  EXPECT_EQ(table.limit.left_out().size(), 17U);
  EXPECT_THAT(table.limit.text(), testing::StartsWith("# left out, as --duration was too short: "
                                                      "64, 128, "));
}

TEST(TableTime, LargerRowsAreExpectedToTakeLonger) {
  SimulatedTable table(10, 3);
  table.row("small", 1, 3);
  table.row("large", 4, 12);  // 4 times 3 s do not fit into the 6.7 s that are left
  EXPECT_THAT(table.limit.left_out(), ElementsAre("large"));
  table.row("small again", 1, 3);
  EXPECT_THAT(table.measured, ElementsAre("small", "small again"));
}

TEST(TableTime, TheFirstRowIsAlwaysMeasured) {
  SimulatedTable table(0.001, 2);
  table.row("first", 1, 60);
  table.row("second", 1, 60);
  EXPECT_THAT(table.measured, ElementsAre("first"));
}

TEST(TableTime, WithoutALimitNothingIsLeftOut) {
  bool asked = false;
  TableTime limit(0, 1, [&] {
    asked = true;
    return 1e9;
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(limit.begins("row", 1));
    EXPECT_EQ(limit.left(), 0);
    limit.ends(0);
  }
  EXPECT_FALSE(asked) << "a clock costs a message";
}

// Ranks that disagreed would wait for each other for ever.
TEST(TableTime, AllRanksGetTheSameAnswers) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    TableTime limit(0.05, 100, agreed_clock(comm));
    std::int64_t measured = 0;
    for (int i = 0; i < 100; ++i) {
      if (limit.begins("row", 1)) {
        ++measured;
        std::this_thread::sleep_for(std::chrono::milliseconds(1 + comm.rank()));
        const double left = limit.left();
        EXPECT_EQ(all_reduce_value(comm, left, ReduceOp::max), left);
        limit.ends(0);
      }
    }
    EXPECT_EQ(all_reduce_value(comm, measured, ReduceOp::min), measured);
    EXPECT_LT(measured, 100);
  });
}

TEST(TableTime, MoreThanThreeSamplesAreSpare) {
  EXPECT_EQ(spare_seconds({1, 2, 3}, 1), 0);
  EXPECT_EQ(spare_seconds({}, 1), 0);
  EXPECT_DOUBLE_EQ(spare_seconds({2, 2, 2, 2, 2}, 2), 8);
}

}  // namespace
}  // namespace trireme
