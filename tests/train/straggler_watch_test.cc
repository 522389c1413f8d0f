#include "src/train/watch/straggler_watch.h"

#include <functional>

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kEvery = 5;

// Runs steps that take seconds(rank, window), and returns which rank was named in which window,
// which must be the same on all ranks.
using Named = std::vector<std::pair<int, int>>;
Named run(int windows, const std::function<double(int, int)>& seconds, int groups = 1) {
  ThreadWorld world(kRanks);
  std::vector<Named> named(kRanks);
  world.run([&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(60));
    StragglerWatch watch(comm, comm.rank() % groups, kEvery);
    for (int step = 0; step < windows * kEvery; ++step) {
      const int window = step / static_cast<int>(kEvery);
      for (const Straggler& each : watch.add(seconds(comm.rank(), window))) {
        EXPECT_EQ(step % kEvery, kEvery - 1);
        EXPECT_GT(each.of_peers, StragglerWatch::kSlowness);
        named[static_cast<std::size_t>(comm.rank())].emplace_back(window, each.rank);
      }
    }
  });
  for (const Named& each : named) {
    EXPECT_EQ(each, named.front());
  }
  return named.front();
}

// Returns a number within 3 % of 1.
double step_noise(int rank, int window) {
  const auto word = philox({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(window)},
                           philox_key(7))[0];
  return 0.97 + 0.06 * static_cast<double>(uniform_float(word));
}

TEST(StragglerWatch, NamesTheSlowRankInItsThirdWindowAndOnce) {
  const Named named = run(9, [](int rank, int window) {
    return step_noise(rank, window) * (rank == 2 && window >= 1 ? 1.3 : 1);
  });
  EXPECT_EQ(named, (Named{{3, 2}}));
}

TEST(StragglerWatch, NamesItAgainAfterItKeptUp) {
  const Named named = run(8, [](int rank, int window) {
    return rank == 1 && window != 3 ? 2.0 : step_noise(rank, window);
  });
  EXPECT_EQ(named, (Named{{2, 1}, {6, 1}}));
}

TEST(StragglerWatch, PassesOverNoiseAndOneSlowWindow) {
  EXPECT_EQ(run(100, step_noise), Named{});
  EXPECT_EQ(run(30, [](int rank, int window) { return window % 3 == 0 && rank == 1 ? 3.0 : 1.0; }),
            Named{});
}

TEST(StragglerWatch, OtherWorkIsNoSlowness) {
  const auto stages = [](int rank, int window) {
    return step_noise(rank, window) * (rank % 2 == 1 ? 5 : 1) * (rank == 3 ? 1.5 : 1);
  };
  EXPECT_EQ(run(4, stages, 2), (Named{{2, 3}}));
}

TEST(StragglerWatch, OneStepDoesNotMakeAWindowSlow) {
  ThreadWorld world(kRanks);
  world.run([&](Communicator& comm) {
    StragglerWatch watch(comm, 0, kEvery);
    for (int step = 0; step < 10 * kEvery; ++step) {
      EXPECT_TRUE(watch.add(step % kEvery == 0 && comm.rank() == 0 ? 50 : 1).empty());
    }
  });
}

TEST(StragglerWatch, NeverJudgesIfNotAsked) {
  ThreadWorld world(kRanks);
  world.run([&](Communicator& comm) {
    StragglerWatch watch(comm, 0, 0);
    for (int step = 0; step < 100; ++step) {
      EXPECT_TRUE(watch.add(comm.rank() == 0 ? 50 : 1).empty());
    }
  });
}

}  // namespace
}  // namespace trireme
