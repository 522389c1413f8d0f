// Tests the errors that ranks get when they are out of step or when a rank has left.
#include "mpi/shm/group.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"
#include "tests/mpi/shm/shm_thread_world.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

template <class ErrorType>
std::string message_of(Pending pending) {
  try {
    pending.wait();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// No data is touched on either rank.
TEST(ShmGroup, NamesRanksThatHaveLostStep) {
  ShmThreadWorld world(2);
  world.run([](Communicator& comm) {
    std::vector<float> data(100000, 1.0F);
    const View all = view_of(data);
    const std::string text =
        comm.rank() == 0
            ? message_of<CommError>(comm.all_reduce(all, ReduceOp::sum))
            : message_of<CommError>(comm.all_reduce(all.slice(0, 50000), ReduceOp::max));
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0 (host node)"), HasSubstr("rank 1 (host node)"),
                            HasSubstr("all_reduce #0 (390.6 KiB, F32, sum)"),
                            HasSubstr("all_reduce #0 (195.3 KiB, F32, max)"),
                            HasSubstr("the ranks are out of step")));
    EXPECT_EQ(data, std::vector<float>(100000, 1.0F));
  });
}

TEST(ShmGroup, NamesTheBarrierBesideABroadcast) {
  ShmThreadWorld world(3);
  world.run([](Communicator& comm) {
    std::vector<std::int64_t> data(4, comm.rank());
    const std::string text = comm.rank() == 1
                                 ? message_of<CommError>(comm.barrier())
                                 : message_of<CommError>(comm.broadcast(view_of(data), 0));
    EXPECT_THAT(text,
                AllOf(HasSubstr("barrier #0"), HasSubstr("broadcast #0 (32 B, I64, root 0)")));
  });
}

TEST(ShmGroup, NamesARankThatEndedEarly) {
  ShmThreadWorld world(3);
  std::string heard;
  EXPECT_THROW(world.run([&](Communicator& comm) {
    if (comm.rank() == 2) {
      throw NotFound("no such shard");
    }
    const std::string text = message_of<CommError>(comm.barrier());
    if (comm.rank() == 0) {
      heard = text;
    }
  }),
               NotFound);
  EXPECT_THAT(heard, HasSubstr("rank 2 (host node) is dead"));
}

// The memory of groups that have ended is used again.
TEST(ShmGroup, ManyGroupsTakeNoMoreMemory) {
  ShmThreadWorld world(2);
  world.run([](Communicator& comm) {
    for (int i = 0; i < 200; ++i) {
      const auto group = comm.split(0, 0);
      EXPECT_EQ(all_reduce_value(*group, std::int64_t{1}, ReduceOp::sum), 2);
    }
    const auto* const arena = dynamic_cast<const Arena*>(&comm.memory());
    ASSERT_NE(arena, nullptr);
    EXPECT_LT(arena->grown_bytes(), std::int64_t{16} << 20);
  });
}

// A receiver may take a message after its sender has ended the group.
TEST(ShmGroup, AMessageOutlivesItsSendersGroup) {
  ShmThreadWorld world(2);
  world.run([](Communicator& comm) {
    auto group = comm.split(0, 0);
    std::vector<std::int32_t> data(5000, comm.rank());
    if (comm.rank() == 0) {
      group->send(view_of(data), 1, 0).wait();
      group.reset();
      comm.barrier().wait();
    } else {
      comm.barrier().wait();
      group->recv(view_of(data), 0, 0).wait();
      EXPECT_EQ(data, std::vector<std::int32_t>(5000, 0));
    }
  });
}

}  // namespace
}  // namespace trireme
