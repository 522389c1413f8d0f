#include "mpi/thread/thread_world.h"

#include <latch>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/thread_sleeps.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(ThreadWorld, RanksHaveNumbersAndHosts) {
  ThreadWorld world(3, {"a", "b"});
  world.run([](Communicator& comm) {
    EXPECT_EQ(comm.size(), 3);
    EXPECT_EQ(comm.host(0), "a");
    EXPECT_EQ(comm.host(1), "b");
    EXPECT_EQ(comm.host(2), "thread2");
    EXPECT_EQ(all_gather_text(comm, std::to_string(comm.rank())),
              (std::vector<std::string>{"0", "1", "2"}));
  });
}

// run() rethrows the first error, and ranks that wait for that rank learn its name at once.
TEST(ThreadWorld, FirstErrorIsThrownAndNamed) {
  ThreadWorld world(3, {"a", "b", "c"});
  std::string heard;
  EXPECT_THROW(world.run([&](Communicator& comm) {
    if (comm.rank() == 2) {
      throw NotFound("no such shard");
    }
    try {
      comm.barrier().wait();
    } catch (const CommError& error) {
      if (comm.rank() == 0) {
        heard = error.what();
      }
      throw;
    }
  }),
               NotFound);
  EXPECT_THAT(heard, HasSubstr("rank 2 (host c) ended early: no such shard"));
}

// Returns once no other thread has woken up during three rounds of an idle progress thread.
void wait_until_others_sleep() {
  for (std::int64_t before = -1, now = sleeps_of_others(); now != before;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    before = std::exchange(now, sleeps_of_others());
  }
}

// The progress thread of a group without operations sleeps for good; the next operation wakes it,
// although no caller waits for it.
TEST(ThreadWorld, OperationsEndUnwaitedForAfterALongPause) {
  ThreadWorld world(2);
  std::latch asleep(1);
  world.run([&](Communicator& comm) {
    comm.barrier().wait();
    if (comm.rank() == 0) {
      wait_until_others_sleep();
      asleep.count_down();
    }
    asleep.wait();
    float value = 1;
    const Pending sum = comm.all_reduce(View{&value, 1, DType::f32}, ReduceOp::sum);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!sum.done() && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(sum.done());
    EXPECT_EQ(value, 2);
  });
}

TEST(ThreadWorld, SplitGroupsSpeakOfWorldRanks) {
  ThreadWorld world(4, {"a", "b", "c", "d"});
  std::string text;
  world.run([&](Communicator& comm) {
    const auto half = comm.split(comm.rank() / 2, 0);
    half->set_deadline(std::chrono::milliseconds(100));
    if (comm.rank() == 2) {
      try {
        half->barrier().wait();
      } catch (const Hang& error) {
        text = error.what();
      }
    }
    comm.barrier().wait();
  });
  EXPECT_THAT(text, HasSubstr("rank 2 (host c)"));
  EXPECT_THAT(text, HasSubstr("to receive 32 B from rank 3 (host d)"));
}

}  // namespace
}  // namespace trireme
