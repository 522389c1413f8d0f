#include "mpi/agreement.h"

#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(RunOnRoot, EveryRankGetsTheText) {
  ThreadWorld(3).run([](Communicator& comm) {
    int calls = 0;
    const std::string text = run_on_root(comm, [&] {
      ++calls;
      return std::string("found");
    });
    EXPECT_EQ(text, "found");
    EXPECT_EQ(calls, comm.rank() == 0 ? 1 : 0);
  });
}

TEST(RunOnRoot, EveryRankMeetsTheSameError) {
  ThreadWorld(3).run([](Communicator& comm) {
    const auto fail = [&] { run_on_root(comm, []() -> std::string { throw DataError("torn"); }); };
    EXPECT_EQ(message_of<DataError>(fail), "torn");
    EXPECT_EQ(run_on_root(comm, [] { return std::string("on"); }), "on");
  });
}

TEST(RunOnRoot, AnErrorOfMemoryStaysOne) {
  ThreadWorld(2).run([](Communicator& comm) {
    const auto refuse = [&] {
      run_on_root(comm, []() -> std::string { throw ResourceError("no room"); });
    };
    EXPECT_EQ(message_of<ResourceError>(refuse), "no room");
    const auto exhaust = [&] {
      run_on_root(comm, []() -> std::string { throw std::bad_alloc(); });
    };
    EXPECT_THAT(message_of<ResourceError>(exhaust), HasSubstr("raise the limits"));
    const auto fault = [&] {
      run_on_root(comm, []() -> std::string { throw DeviceError("lost"); });
    };
    EXPECT_EQ(message_of<DeviceError>(fault), "lost");
  });
}

TEST(GatherFaults, NamesRanksAndHosts) {
  ThreadWorld(3, {"a", "b", "c"}).run([](Communicator& comm) {
    EXPECT_EQ(gather_faults(comm, ""), "");
    const std::string faults = gather_faults(comm, comm.rank() == 1 ? "no space" : "");
    EXPECT_EQ(faults, "rank 1 (b): no space");
    EXPECT_EQ(gather_faults(comm, "bad"), "rank 0 (a), rank 1 (b), rank 2 (c): bad");
    EXPECT_EQ(gather_faults(comm, comm.rank() == 1 ? "worse" : "bad"),
              "rank 0 (a), rank 2 (c): bad; rank 1 (b): worse");
  });
}

TEST(GatherFaults, NamesNobodyWhereThereIsOneRank) {
  ThreadWorld(1).run([](Communicator& comm) {
    EXPECT_EQ(gather_faults(comm, ""), "");
    EXPECT_EQ(gather_faults(comm, "no space"), "no space");
  });
}

}  // namespace
}  // namespace trireme
