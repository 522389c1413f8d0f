// Tests which copies MemoryTarget requests from partners, and which folders it removes.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/memory/memory_target.h"
#include "tests/io/checkpoint/memory/memory_nodes.h"
#include "tests/support/at_faults.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// A partner deletes its older copy when it gets a newer one, so no copy is requested while a node
// may still fail to commit the step.
TEST(MemoryCopies, AsksForACopyOnceAllNodesHaveTheStep) {
  const Nodes nodes(2);
  std::atomic<int> too_early = 0;
  std::atomic<int> leaders = 0;
  const AtFaults waiting([&](std::string_view point) {
    if (point == "memory.rename" && ++leaders == 2) {
      const auto committed = [&] { return fs::exists(nodes.own_step(0, 1, 1)) ? 0 : 1; };
      while (!fs::exists(nodes.own_step(committed(), 1, 1))) {
        std::this_thread::yield();
      }
      too_early += fs::exists(nodes.own_step(committed(), 1, 1) / kWantsCopyName) ? 1 : 0;
    }
  });
  run(nodes, 4,
      [&](Communicator& comm, MemorySaver& memory) { EXPECT_TRUE(save(comm, memory, 1).durable); });
  EXPECT_EQ(too_early, 0);
  EXPECT_EQ(read_file(nodes.own_step(1, 1, 1) / kWantsCopyName),
            "shard-00002.safetensors\nshard-00003.safetensors\n");
}

// The first run ended before it could request the copy; the run that resumes from the step requests
// it.
TEST(MemoryCopies, AsksForACopyOfWhatItResumedFrom) {
  const Nodes nodes(2);
  ASSERT_TRUE(save_in_memory(nodes, {small_state()}, cut_flat, 2, 1, false)[0].durable);
  run(
      nodes, 2, [](Communicator&, MemorySaver&) {}, 2, MemoryStepName{1, 1});
  EXPECT_EQ(read_file(nodes.own_step(1, 1, 1) / kWantsCopyName), "shard-00001.safetensors\n");
}

// A rank of an attempt that the supervisor has given up may still be at work.
TEST(MemoryCopies, ALaterRunsFoldersAreLeftAlone) {
  const Nodes nodes(1);
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    if (comm.rank() == 0) {
      for (const char* name : {"step-00000009-g000002", ".tmp-10-2", ".free-2"}) {
        fs::create_directories(nodes.node(0).own() / name);
      }
    }
    comm.barrier().wait();
    EXPECT_TRUE(save(comm, memory, 1).durable);
  });
  EXPECT_THAT(
      names_in(nodes.node(0).own()),
      ElementsAre(".free-2", ".tmp-10-2", "step-00000001-g000001", "step-00000009-g000002"));
}

// Copies of a node that has left the run would otherwise remain forever.
TEST(MemoryCopies, CopiesOlderThanEveryStepGo) {
  const Nodes nodes(2);
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    EXPECT_TRUE(save(comm, memory, 1).durable);
    comm.barrier().wait();
    if (comm.rank() == 0) {
      fs::create_directories(nodes.node(0).partner() / "left");
      fs::copy(nodes.own_step(0, 1, 1), nodes.node(0).partner() / "left" / "step-00000001-g000001",
               fs::copy_options::recursive);
      fs::create_directories(nodes.node(0).partner() / "left" / ".tmp-step-00000001-g000001");
      fs::create_directories(nodes.node(0).partner() / "node-1" / "step-00000004-g000001");
    }
    comm.barrier().wait();
    EXPECT_TRUE(save(comm, memory, 2).durable);
    EXPECT_TRUE(save(comm, memory, 3).durable);
    comm.barrier().wait();
    if (comm.rank() == 0) {
      EXPECT_TRUE(fs::exists(nodes.node(0).partner() / "left" / "step-00000001-g000001"));
    }
    comm.barrier().wait();
    EXPECT_TRUE(save(comm, memory, 4).durable);
    EXPECT_TRUE(save(comm, memory, 5).durable);
  });
  EXPECT_THAT(names_in(nodes.node(0).partner() / "left"),
              ElementsAre(".tmp-step-00000001-g000001"));
  EXPECT_THAT(names_in(nodes.node(0).partner() / "node-1"), ElementsAre("step-00000004-g000001"));
}

// After a rewind, a run saves a step of the same name again, and the later one counts.
TEST(MemoryCopies, AStepIsSavedAnew) {
  const Nodes nodes(2);
  run(nodes, 4, [&](Communicator& comm, MemorySaver& memory) {
    for (const std::int64_t step : {1, 2, 3, 2, 3, 3}) {
      EXPECT_TRUE(save(comm, memory, step).durable) << step;
    }
    const SaveOutcome outcome = save(comm, memory, 3, small_state(7));
    EXPECT_TRUE(outcome.durable) << outcome.message;
  });
  EXPECT_TRUE(load_nearest(nodes, small_state(7), cut_rows, 3).equal);
}

// systemd clears a user's files in /dev/shm when the user's last session ends (RemoveIPC).
TEST(MemoryCopies, SavesAgainWhereItsFilesWereRemoved) {
  const Nodes nodes(2);
  run(nodes, 4, [&](Communicator& comm, MemorySaver& memory) {
    for (const std::int64_t step : {1, 2, 3, 4}) {
      EXPECT_TRUE(save(comm, memory, step).durable);
    }
    comm.barrier().wait();
    if (comm.rank() == 0) {
      fs::remove_all(nodes.node(0).folder);
    }
    comm.barrier().wait();
    EXPECT_TRUE(save(comm, memory, 5, small_state(5)).durable);
  });
  EXPECT_TRUE(load_nearest(nodes, small_state(5), cut_rows, 3).equal);
}

}  // namespace
}  // namespace trireme
