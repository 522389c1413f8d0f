#include "io/checkpoint/memory/memory_target.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/verify.h"
#include "tests/io/checkpoint/memory/memory_nodes.h"
#include "tests/support/at_faults.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Counts the shard files below a folder, whatever their names, and their bytes.
struct Space {
  int files = 0;
  std::int64_t bytes = 0;
};
Space space_of(const fs::path& folder) {
  Space space;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() >= kDataAlignment &&
        entry.path().filename() != kManifestName) {
      ++space.files;
      space.bytes += static_cast<std::int64_t>(entry.file_size());
    }
  }
  return space;
}

TEST(MemoryTarget, KeepsTheNewestTwoInThreeFiles) {
  const Nodes nodes(2);
  run(nodes, 4, [&](Communicator& comm, MemorySaver& memory) {
    const Blocks blocks = cut_state(large_state(), cut_flat, comm.rank(), 4);
    EXPECT_EQ(memory.target.reserve(blocks.list), "");
    const std::int64_t reserved = memory.target.bytes();
    for (std::int64_t step = 1; step <= 7; ++step) {
      const SaveOutcome outcome =
          save(comm, memory, step, large_state(static_cast<std::uint64_t>(step)));
      EXPECT_TRUE(outcome.durable) << outcome.message;
      EXPECT_EQ(memory.target.bytes(), reserved);
      comm.barrier().wait();
      if (comm.rank() == 0) {
        EXPECT_EQ(space_of(nodes.node(0).own()).files, 6) << "step " << step;
      }
      comm.barrier().wait();
    }
  });
  const std::vector<MemoryStep> steps = list_memory_steps(nodes.node(1));
  ASSERT_EQ(steps.size(), 3U);  // the oldest one remains until its slot is needed
  EXPECT_EQ(steps[0].name.step, 7);
  EXPECT_EQ(steps[1].name.step, 6);
  EXPECT_TRUE(load_nearest(nodes, large_state(7), cut_rows, 3).equal);
}

TEST(MemoryTarget, GivesBackWhatNoStepNeeds) {
  const Nodes nodes(2);
  run(nodes, 4, [&](Communicator& comm, MemorySaver& memory) {
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 4);
    EXPECT_EQ(memory.target.reserve(blocks.list), "");
    EXPECT_TRUE(save(comm, memory, 1).durable);
    memory.writer.save(meta_of(2), blocks.list);  // this save is not finished
  });
  EXPECT_THAT(names_in(nodes.node(0).own()), ElementsAre("step-00000001-g000001"));
  EXPECT_EQ(space_of(nodes.node(0).own()).files, 2);
  EXPECT_TRUE(load_nearest(nodes, small_state(), cut_rows, 3).equal);
}

// Shards and digest are those of a save on disk.
TEST(MemoryTarget, SavesWhatTheDiskWouldHold) {
  const Nodes nodes(1);
  const State state = large_state();
  ASSERT_TRUE(save_in_memory(nodes, {state}, cut_rows, 2)[0].durable);
  ASSERT_TRUE(save_state(nodes.disk(), state, 1, cut_rows, 2).durable);
  const MemoryStep in_memory = list_memory_steps(nodes.node(0)).at(0);
  const StepFolder on_disk = inspect_step(step_path(nodes.disk(), 1));
  EXPECT_EQ(contents_id(*in_memory.manifest), contents_id(*on_disk.manifest));
  EXPECT_THAT(verify_step(in_memory.path, *in_memory.manifest), testing::IsEmpty());
  EXPECT_EQ(logical_digest(in_memory.path, *in_memory.manifest, DigestScope::all),
            digest_of(step_path(nodes.disk(), 1)));
}

// A step that is due in memory and on disk is copied once; it is written to disk from memory, where
// it is pinned meanwhile.
TEST(MemoryTarget, TheDiskIsWrittenFromMemory) {
  const Nodes nodes(2);
  const State state = large_state();
  nodes.world(4).run([&](Communicator& comm) {
    DiskTarget disk(comm, options_for(nodes.disk()));
    CheckpointWriter disk_writer(comm, disk);
    const NodeMemory node = nodes.node(nodes.node_of(comm.rank(), 4));
    const NodeMap map = map_nodes(comm, node);
    MemorySaver memory(comm, map, memory_options(node, disk.generation()));
    EXPECT_EQ(memory.target.open(std::nullopt), "");
    Blocks blocks = cut_state(state, cut_flat, comm.rank(), 4);
    memory.writer.save(meta_of(1), blocks.list);
    disk_writer.save(meta_of(1), memory.target.snapshot().value());
    memory.target.pin_latest();
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end(), std::byte{0});
    }
    for (std::int64_t step = 2; step <= 6; ++step) {
      memory.writer.save(meta_of(step), blocks.list);
    }
    EXPECT_TRUE(memory.writer.finish()->durable);
    EXPECT_TRUE(disk_writer.finish()->durable);
    EXPECT_EQ(disk.snapshot_bytes(), 0) << "no memory of its own";
  });
  EXPECT_TRUE(load_state(nodes.disk(), state, cut_rows, 2).equal);
}

TEST(MemoryTarget, APinnedStepIsNotOverwritten) {
  const Nodes nodes(1);
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    EXPECT_TRUE(save(comm, memory, 1).durable);
    memory.target.pin_latest();
    const std::byte* pinned = memory.target.snapshot()->image;
    const std::vector<std::byte> before(pinned, pinned + memory.target.snapshot()->bytes);
    for (std::int64_t step = 2; step <= 6; ++step) {
      EXPECT_TRUE(save(comm, memory, step, small_state(9)).durable);
    }
    EXPECT_TRUE(std::equal(before.begin(), before.end(), pinned));
    memory.target.unpin();
    EXPECT_TRUE(save(comm, memory, 7, small_state(9)).durable);
    EXPECT_TRUE(save(comm, memory, 8, small_state(9)).durable);
    EXPECT_FALSE(std::equal(before.begin(), before.end(), pinned));
  });
}

// The newest step that partners have stays until they have a newer one.
TEST(MemoryTarget, WhatPartnersHaveIsKept) {
  const Nodes nodes(2);
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    const auto copy = [&](std::int64_t step) {
      comm.barrier().wait();
      const int node = comm.rank();
      nodes.copy_to_partner(node, 1 - node, step, 1);
      comm.barrier().wait();
    };
    EXPECT_TRUE(save(comm, memory, 1).durable);
    copy(1);
    for (std::int64_t step = 2; step <= 5; ++step) {
      EXPECT_TRUE(save(comm, memory, step).durable);
    }
    EXPECT_TRUE(fs::exists(nodes.own_step(comm.rank(), 1, 1) / kCopiedName));
    copy(5);
    EXPECT_TRUE(save(comm, memory, 6).durable);
    EXPECT_TRUE(save(comm, memory, 7).durable);
    EXPECT_FALSE(fs::exists(nodes.own_step(comm.rank(), 1, 1)));
    EXPECT_TRUE(fs::exists(nodes.own_step(comm.rank(), 5, 1) / kCopiedName));
  });
}

TEST(MemoryTarget, OneNodesCopyIsNotEnough) {
  const Nodes nodes(2);
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    EXPECT_TRUE(save(comm, memory, 1).durable);
    comm.barrier().wait();
    nodes.copy_to_partner(comm.rank(), 1 - comm.rank(), 1, 1);
    comm.barrier().wait();
    for (std::int64_t step = 2; step <= 6; ++step) {
      EXPECT_TRUE(save(comm, memory, step).durable);
      if (comm.rank() == 0) {
        fs::rename(nodes.own_step(0, step, 1) / kWantsCopyName,
                   nodes.own_step(0, step, 1) / kCopiedName);
      }
    }
    EXPECT_TRUE(fs::exists(nodes.own_step(comm.rank(), 1, 1) / kCopiedName));
  });
}

TEST(MemoryTarget, AsksForCopiesOnlyWhereTheyAreWanted) {
  for (const bool partner : {true, false}) {
    const Nodes nodes(1);
    ASSERT_TRUE(save_in_memory(nodes, {small_state()}, cut_flat, 2, 1, partner)[0].durable);
    EXPECT_EQ(fs::exists(nodes.own_step(0, 1, 1) / kWantsCopyName), partner);
  }
}

// If memory is full, the save is given up on all nodes and older steps stay; the next save succeeds
// once there is space.
TEST(MemoryTarget, AFullMemoryGivesTheSaveUp) {
  const SmallFileSystem small(24 << 20);
  if (!small.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  const Nodes nodes(2, small.path());
  const fs::path filler = small.path() / "filler";
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) {
    const State state = large_state();  // about 8 MiB
    EXPECT_TRUE(save(comm, memory, 1, state).durable);
    comm.barrier().wait();
    if (comm.rank() == 0) {
      std::ofstream(filler) << std::string(std::size_t{12} << 20, 'x');
    }
    comm.barrier().wait();
    const SaveOutcome outcome = save(comm, memory, 2, state);
    EXPECT_FALSE(outcome.durable);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("rank "), HasSubstr("node's memory")));
    comm.barrier().wait();
    if (comm.rank() == 0) {
      EXPECT_TRUE(fs::exists(nodes.own_step(0, 1, 1) / kManifestName));
      fs::remove(filler);
    }
    comm.barrier().wait();
    EXPECT_TRUE(save(comm, memory, 3, state).durable);
  });
  EXPECT_TRUE(load_nearest(nodes, large_state(), cut_rows, 3).equal);
}

TEST(MemoryTarget, AFailureOfOneRankIsThatOfAll) {
  const Nodes nodes(2);
  std::atomic<int> renames = 0;  // each of the two leaders does one in each save
  const AtFaults failing([&](std::string_view point) {
    if (point == "memory.rename" && ++renames == 3) {
      throw IoError("this node is in trouble");
    }
  });
  run(nodes, 4, [&](Communicator& comm, MemorySaver& memory) {
    EXPECT_TRUE(save(comm, memory, 1).durable);
    const SaveOutcome outcome = save(comm, memory, 2, small_state(2));
    EXPECT_FALSE(outcome.durable);
    EXPECT_THAT(outcome.message, AllOf(HasSubstr("rank "), HasSubstr("in trouble")));
    comm.barrier().wait();
    EXPECT_FALSE(fs::exists(nodes.own_step(nodes.node_of(comm.rank(), 4), 2, 1)));
    comm.barrier().wait();
    for (std::int64_t step = 3; step <= 6; ++step) {
      EXPECT_TRUE(save(comm, memory, step, small_state(3)).durable);
    }
  });
  EXPECT_TRUE(load_nearest(nodes, small_state(3), cut_rows, 3).equal);
}

// An earlier run's attempts are removed at once. The step that was resumed from stays until two
// newer ones are whole, within the memory of three steps.
TEST(MemoryTarget, TakesOverFromAnEarlierRun) {
  const Nodes nodes(2);
  ASSERT_TRUE(save_in_memory(nodes, {small_state(1), small_state(2)}, cut_flat, 4)[1].durable);
  fs::create_directories(nodes.node(0).own() / ".tmp-3-1");
  fs::create_directories(nodes.node(1).own() / ".free-1");
  const auto own_names = [&](int node) { return names_in(nodes.node(node).own()); };
  run(
      nodes, 2,
      [&](Communicator& comm, MemorySaver& memory) {
        const int node = comm.rank();
        EXPECT_THAT(own_names(node), ElementsAre("step-00000002-g000001"));
        const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 2);
        EXPECT_EQ(memory.target.reserve(blocks.list), "");
        EXPECT_TRUE(save(comm, memory, 3).durable);
        EXPECT_TRUE(fs::exists(nodes.own_step(node, 2, 1)));
        EXPECT_TRUE(save(comm, memory, 4).durable);
        EXPECT_TRUE(save(comm, memory, 5).durable);
        EXPECT_THAT(own_names(node),
                    UnorderedElementsAre(".free-2", "step-00000003-g000002",
                                         "step-00000004-g000002", "step-00000005-g000002"));
        EXPECT_TRUE(save(comm, memory, 6).durable);
      },
      2, MemoryStepName{2, 1});
  EXPECT_TRUE(load_nearest(nodes, small_state(), cut_rows, 3).equal);
}

// With many ranks, a small model leaves some ranks without a block. They must agree with the others
// on which steps are held.
TEST(MemoryTarget, ARankWithoutBlocksCountsTheSameSteps) {
  const Nodes nodes(2);
  const auto blocks_of = [](int rank) {
    return rank == 0 ? cut_state(small_state(), cut_nothing, 0, 1) : Blocks{};
  };
  const auto save_of_first = [&](Communicator& comm, MemorySaver& memory, std::int64_t step) {
    const Blocks blocks = blocks_of(comm.rank());
    memory.writer.save(meta_of(step), blocks.list);
    EXPECT_TRUE(memory.writer.finish().value().durable);
    comm.barrier().wait();
    if (step > 1 && comm.rank() == 0) {
      nodes.copy_to_partner(0, 1, step, 2);
      nodes.copy_to_partner(1, 0, step, 2);
    }
    comm.barrier().wait();
  };
  run(nodes, 2, [&](Communicator& comm, MemorySaver& memory) { save_of_first(comm, memory, 1); });
  nodes.world(2).run([&](Communicator& comm) {
    MemoryOptions options = memory_options(nodes.node(comm.rank()), 2);
    options.partner = true;
    const NodeMap map = map_nodes(comm, options.node);
    MemorySaver memory(comm, map, options);
    EXPECT_EQ(memory.target.open(MemoryStepName{1, 1}), "");
    const Blocks blocks = blocks_of(comm.rank());
    EXPECT_EQ(memory.target.reserve(blocks.list), "");
    for (std::int64_t step = 2; step <= 6; ++step) {
      save_of_first(comm, memory, step);
    }
  });
}

// A node that was away has nothing of the step, which the other nodes keep nevertheless.
TEST(MemoryTarget, AFreshNodeJoins) {
  const Nodes nodes(2);
  ASSERT_TRUE(save_in_memory(nodes, {small_state(1)}, cut_flat, 2)[0].durable);
  nodes.lose(1);
  run(
      nodes, 2,
      [&](Communicator& comm, MemorySaver& memory) {
        for (std::int64_t step = 2; step <= 6; ++step) {
          EXPECT_TRUE(save(comm, memory, step).durable);
        }
      },
      2, MemoryStepName{1, 1});
  EXPECT_TRUE(load_nearest(nodes, small_state(), cut_rows, 3).equal);
}

TEST(MemoryTarget, AFolderThatCannotBeMadeIsTold) {
  const Nodes nodes(2);
  std::ofstream(nodes.node(1).folder) << "a file in the way";
  nodes.world(2).run([&](Communicator& comm) {
    const NodeMemory node = nodes.node(comm.rank());
    const NodeMap map = map_nodes(comm, node);
    MemorySaver memory(comm, map, memory_options(node));
    EXPECT_THAT(memory.target.open(std::nullopt),
                AllOf(HasSubstr("rank 1 ("), HasSubstr("node-1")));
  });
}

TEST(NodeMap, GroupsRanksByHostAndFolder) {
  ThreadWorld(5, {"a", "a", "b", "b", "b"}).run([](Communicator& comm) {
    const std::vector<std::string> folders = {"/x", "/y", "/x", "/x", ""};
    NodeMemory own{folders[static_cast<std::size_t>(comm.rank())], "n"};
    const NodeMap map = map_nodes(comm, own);
    EXPECT_THAT(map.node_of, ElementsAre(0, 1, 2, 2, -1));
    EXPECT_TRUE(map.any());
    EXPECT_FALSE(map.all());
    EXPECT_TRUE(map.leads(2));
    EXPECT_FALSE(map.leads(3));
    EXPECT_FALSE(map.leads(4));
  });
}

}  // namespace
}  // namespace trireme
