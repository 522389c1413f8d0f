#include "benchmarks/turns.h"

#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "benchmarks/coll/tune.h"
#include "benchmarks/memory_rate.h"
#include "benchmarks/p2p/point_to_point.h"
#include "mpi/thread/thread_world.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

// Every rank receives the slowest rank's time, and the ways alternate.
TEST(Turns, TheSlowestRankCounts) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    std::string order;
    std::vector<double> own;  // what rank 1 measures itself
    const auto slow = [&] {
      order += 'a';
      const Stopwatch watch;
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 1 ? 2 : 0));
      own.push_back(comm.rank() == 1 ? watch.seconds() : 0);
    };
    const auto quick = [&] { order += 'b'; };
    const auto samples =
        take_turns(comm, {slow, quick}, {.warmup = 1, .iterations = 3, .aggregated = 1});
    ASSERT_EQ(samples.size(), 2U);
    ASSERT_EQ(samples[0].seconds.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_GE(samples[0].seconds[i], all_reduce_value(comm, own[1 + i], ReduceOp::max));
    }
    EXPECT_EQ(order, "abababab");
  });
}

// Ranks that share a core may begin when the others have ended.
TEST(Turns, SamplesCanEndWithTheLastRank) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    std::vector<double> own;
    const auto work = [&] {
      const Stopwatch watch;
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 2 ? 4 : 1));
      own.push_back(watch.seconds());
    };
    TurnOptions options{.warmup = 0, .iterations = 2};
    options.aggregated = 1;
    options.until_all_end = true;
    const auto samples = take_turns(comm, {work}, options).front();
    ASSERT_EQ(samples.by_rank.size(), 3U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_GE(samples.seconds[i], all_reduce_value(comm, own[i], ReduceOp::max));
      for (const auto& of_rank : samples.by_rank) {
        EXPECT_GE(samples.seconds[i], of_rank[i]);
      }
    }
  });
}

TEST(Turns, StopWhenTheMedianIsKnown) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    TurnOptions options{.warmup = 0};
    options.aggregated = 1;
    // Any six samples are precise enough for the first limit, and none for the second.
    for (const auto& [precision, expected] : {std::pair(1e9, 6U), std::pair(1e-12, 9U)}) {
      options.stop = StopRule{.least = 6, .most = 9, .seconds = 0, .precision = precision};
      EXPECT_EQ(take_turns(comm, {[] {}}, options).front().seconds.size(), expected);
    }
  });
}

TEST(Turns, QuickCallsShareASample) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    std::int64_t calls = 0;
    const auto samples = take_turns(comm, {[&] { ++calls; }}, {.warmup = 2, .iterations = 3});
    // The number of calls depends on how long they take.
    EXPECT_GE(samples[0].aggregated, 1);
    EXPECT_LE(samples[0].aggregated, kMostAggregated);
    EXPECT_EQ(calls, 2 + 5 + 3 * samples[0].aggregated);
    EXPECT_EQ(all_reduce_value(comm, samples[0].seconds[0], ReduceOp::min), samples[0].seconds[0]);
  });
}

TEST(PointToPoint, MeasuresOnTheFirstSender) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    std::vector<std::uint8_t> bytes(1000, static_cast<std::uint8_t>(comm.rank() + 1));
    const View data{bytes.data(), 1000, DType::u8};
    const bool sends = comm.rank() == 1;
    const PointToPoint how{1 - comm.rank(), sends, 2, 5};
    const auto latency = latency_seconds(comm, data, data, how);
    EXPECT_EQ(bytes[999], 2);
    EXPECT_EQ(latency.size(), 5U);
    EXPECT_EQ(latency[0] > 0, sends);
    const auto windows = window_seconds(comm, data, 7, how);
    EXPECT_EQ(windows.size(), 5U);
    EXPECT_EQ(windows[4] > 0, sends);
  });
}

TEST(MemoryRate, IsTheSameOnEveryRank) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    const double rate = MemoryRate().measure(comm);
    EXPECT_GT(rate, 0);
    EXPECT_EQ(all_reduce_value(comm, rate, ReduceOp::max), rate);
  });
}

TEST(Tune, NeighboursOfOneBackendAreOneEntry) {
  const auto entries = tuning_entries(
      Collective::all_reduce,
      {{8, Backend::mpi}, {64, Backend::mpi}, {512, Backend::shm}, {4096, Backend::hierarchical}});
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0], (TuningEntry{"all_reduce", 64, Backend::mpi}));
  EXPECT_EQ(entries[1], (TuningEntry{"all_reduce", 512, Backend::shm}));
  EXPECT_EQ(entries[2].backend, Backend::hierarchical);
  Tuning tuning{2, 1, 2, entries};
  EXPECT_EQ(parse_tuning(to_text(tuning)), tuning);
  EXPECT_EQ(tuning.choose("all_reduce", std::int64_t{1} << 40), Backend::hierarchical);
}

TEST(Tune, SmallGainsAreNoReasonToChange) {
  EXPECT_EQ(choose_backend({1.04, 1.0, 3.0}, std::nullopt), 1U);
  EXPECT_EQ(choose_backend({1.04, 1.0, 3.0}, 0), 0U);
  EXPECT_EQ(choose_backend({1.04, 1.0, 3.0}, 2), 1U);
}

// Calls of a minute must not be repeated for a warm-up that a duration does not have.
TEST(Turns, AWarmUpCanBeLimited) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    std::int64_t calls = 0;
    TurnOptions options{.warmup = 1'000'000, .iterations = 1};
    options.seconds = 0.001;
    options.warmup_seconds = 0.02;
    const auto slow = [&] {
      ++calls;
      std::this_thread::sleep_for(std::chrono::milliseconds(4 + comm.rank()));
    };
    const auto samples = take_turns(comm, {slow}, options).front();
    EXPECT_LE(samples.warmup, 10);
    EXPECT_EQ(samples.aggregated, 1);
    EXPECT_EQ(samples.seconds.size(), 3U);
    EXPECT_EQ(calls, samples.warmup + 1 + 3) << "one trial tells that calls are slow";
    EXPECT_EQ(all_reduce_value(comm, calls, ReduceOp::min), calls);
  });
}

}  // namespace
}  // namespace trireme
