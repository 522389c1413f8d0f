// Tests what a communicator over NCCL does when NCCL fails or a rank does not come, how it
// registers memory, and what it notes of the links. Ranks are threads with a simulated device each.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/nccl/nccl_check.h"
#include "mpi/nccl/nccl_world.h"
#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/pool.h"
#include "src/device/sim/fault.h"
#include "src/device/sim/nccl_registrations.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kLarge = std::int64_t{2} << 20;  // bytes; NCCL registers such blocks

// Answers for ranks that are threads.
class Recorders : public Inquiry {
 public:
  explicit Recorders(ThreadWorld& world) : world_(world) {}
  std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                               std::chrono::milliseconds) override {
    std::vector<std::optional<FlightReport>> answers;
    for (int rank = 0; rank < 2; ++rank) {
      answers.push_back(world_.recorder(rank).answer(question));
    }
    return answers;
  }

 private:
  ThreadWorld& world_;
};

// NCCL writes these words into its log, from which ncclGetLastError takes them.
TEST(NcclOutOfMemory, IsKnownByItsWords) {
  EXPECT_TRUE(is_out_of_memory(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'"));
  EXPECT_TRUE(is_out_of_memory(ncclSystemError, "Call to mmap failed: Cannot allocate memory"));
  EXPECT_FALSE(
      is_out_of_memory(ncclUnhandledCudaError, "Cuda failure 700 'illegal memory access'"));
  EXPECT_FALSE(is_out_of_memory(ncclSystemError, "socketPollConnect: Connection refused"));
  EXPECT_FALSE(is_out_of_memory(ncclRemoteError, "out of memory"));  // of another rank
}

class NcclFaults : public testing::Test {
 protected:
  ~NcclFaults() override { sim::set_faults(""); }

  std::unique_ptr<Communicator> connect(Communicator& threads, LinkBook* links = nullptr,
                                        std::chrono::duration<double> deadline = 60s) {
    return make_nccl_world(threads.split(0, threads.rank(), "control"),
                           {.device = {DeviceKind::cuda, threads.rank()},
                            .watch = {&world_.recorder(threads.rank()), &recorders_, 7},
                            .deadline = deadline,
                            .links = links});
  }

  ThreadWorld world_{2, {"a", "b"}};
  Recorders recorders_{world_};
};

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{} {}", static_cast<int>(error.exit_code()), error.what());
  }
  return "nothing was thrown";
}

TEST_F(NcclFaults, AnAsynchronousErrorFailsAllGroupsOfAllRanks) {
  world_.run([&](Communicator& threads) {
    const auto world = connect(threads);
    const auto group = world->split(0, threads.rank(), "dp");
    threads.barrier().wait();
    if (threads.rank() == 0) {
      sim::set_faults("1:2:error");  // after the two operations with which the group meets
    }
    threads.barrier().wait();
    EXPECT_THAT(message_of([&] { group->barrier().wait(); }),
                AllOf(HasSubstr("85 "), HasSubstr("barrier"),
                      HasSubstr("over NCCL in a group of 2 ranks failed")));
    EXPECT_THAT(message_of([&] { world->barrier().wait(); }), HasSubstr("85 "));
    threads.barrier().wait();
  });
}

// The simulated device does not recover, so a process of its own loses it. While rank 1 does not
// come to the barrier, only the monitors ask for the device's state.
TEST_F(NcclFaults, ADeviceThatFailsDuringAnOperationEndsTheWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_the_device = [&] {
    std::array<std::string, 2> messages;
    world_.run([&](Communicator& threads) {
      const auto world = connect(threads);
      const auto group = world->split(0, threads.rank(), "dp");
      threads.barrier().wait();
      if (threads.rank() == 0) {
        sim::set_faults("1:2:hang,cudaEventQuery:50:cudaErrorIllegalAddress");
      }
      threads.barrier().wait();
      messages[static_cast<std::size_t>(threads.rank())] =
          message_of([&] { group->barrier().wait(); });
      threads.barrier().wait();
    });
    for (const std::string& message : messages) {
      std::fprintf(stderr, "%s\n", message.c_str());
    }
    std::exit(7);
  };
  EXPECT_EXIT(lose_the_device(), testing::ExitedWithCode(7),
              "76 .*cudaErrorIllegalAddress.*\n76 .*cudaErrorIllegalAddress");
}

// NCCL waits for all ranks when it connects them, which a deadline limits, too.
TEST_F(NcclFaults, NamesARankThatDoesNotConnect) {
  world_.run([&](Communicator& threads) {
    const auto control = threads.split(0, threads.rank(), "other");
    if (threads.rank() == 0) {
      EXPECT_THAT(message_of([&] { (void)connect(threads, nullptr, 0.3s); }),
                  AllOf(HasSubstr("85 "), HasSubstr("did not finish within 0.3s"),
                        HasSubstr("rank 1 (host b)")));
    } else {
      world_.recorder(1).enter_phase("data_load");
      const auto unused = threads.split(0, 1, "control");
      char id[128] = {};
      unused->broadcast({id, sizeof id, DType::u8}, 0)
          .wait();  // takes the id, but does not connect
    }
    control->barrier().wait();
  });
}

TEST_F(NcclFaults, AFailedCallFailsAllLaterOperations) {
  world_.run([&](Communicator& threads) {
    const auto world = connect(threads);
    threads.barrier().wait();
    if (threads.rank() == 0) {
      sim::set_faults("ncclAllReduce:1:ncclInternalError,ncclAllReduce:2:ncclInternalError");
    }
    threads.barrier().wait();
    EXPECT_THAT(message_of([&] { world->barrier().wait(); }),
                AllOf(HasSubstr("85 "), HasSubstr("ncclAllReduce")));
    threads.barrier().wait();
    sim::set_faults("");
    EXPECT_THAT(message_of([&] { world->barrier().wait(); }), HasSubstr("ncclAllReduce"));
    threads.barrier().wait();
  });
}

TEST_F(NcclFaults, RegistersLargeBlocksWithEveryGroup) {
  const std::int64_t before = sim::registrations();
  world_.run([&](Communicator& threads) {
    LinkBook links;
    const auto world = connect(threads, &links);
    Pool pool({DeviceKind::cuda, threads.rank()}, world->memory());
    const Buffer early = pool.allocate(kLarge);
    const auto group = world->split(0, threads.rank(), "dp");
    const Buffer late = pool.allocate(kLarge);
    const Buffer small = pool.allocate(64);
    threads.barrier().wait();
    EXPECT_EQ(sim::registrations() - before, 2 * 2 * 2) << "2 ranks, 2 blocks, 2 communicators";
    EXPECT_THAT(links.notes, IsEmpty());
    threads.barrier().wait();
  });
  EXPECT_EQ(sim::registrations(), before) << "all are deregistered at the end";
}

TEST_F(NcclFaults, GoesOnWithoutRegistering) {
  for (const char* const call : {"ncclCommRegister", "ncclMemAlloc"}) {
    const std::int64_t before = sim::registrations();
    sim::set_faults(fmt::format("{0}:1:ncclInvalidUsage,{0}:2:ncclInvalidUsage", call));
    world_.run([&](Communicator& threads) {
      LinkBook links;
      const auto world = connect(threads, &links);
      const auto group = world->split(0, threads.rank(), "dp");
      Pool pool({DeviceKind::cuda, threads.rank()}, world->memory());
      const Buffer buffer = pool.allocate(kLarge);
      group->broadcast(buffer.view(DType::f32), 0).wait();
      threads.barrier().wait();
      EXPECT_EQ(sim::registrations(), before);
      ASSERT_EQ(links.notes.size(), 1U) << call;
      EXPECT_THAT(*links.notes.begin(), HasSubstr(call));
      threads.barrier().wait();
    });
  }
}

// The threads share NCCL's log, so that only all of them together know all links.
TEST_F(NcclFaults, NotesTheLinksOfAGroup) {
  std::vector<LinkBook> books(2);
  world_.run([&](Communicator& threads) {
    const auto world = connect(threads, &books[static_cast<std::size_t>(threads.rank())]);
    const auto group = world->split(0, threads.rank(), "dp");
    threads.barrier().wait();
  });
  std::set<Link> links;
  for (const LinkBook& book : books) {
    EXPECT_EQ(book.trouble, "");
    for (const GroupLink& each : book.links) {
      EXPECT_EQ(each.group, "dp");
      links.insert(each.link);
    }
  }
  EXPECT_TRUE(links.contains(Link{0, 1, LinkKind::nvlink, false}));
  EXPECT_TRUE(links.contains(Link{1, 0, LinkKind::nvlink, false}));
}

}  // namespace
}  // namespace trireme
