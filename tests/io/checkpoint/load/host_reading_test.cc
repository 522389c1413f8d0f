// Tests that what several ranks of a host want from the disk is read once.
#include "io/checkpoint/load/host_reading.h"

#include <atomic>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/checkpoint/memory/memory_nodes.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostPlan, EachPieceHasOneReader) {
  const auto blocks = [](unsigned long bits) { return PieceBlocks(bits); };
  const std::vector<std::vector<Piece>> wanted = {
      {{0, 0, blocks(0xff)}, {0, 1, blocks(0x0f)}, {0, 2, blocks(1)}},
      {{0, 0, blocks(0x01)}, {0, 1, blocks(0xf0)}, {1, 0, blocks(2)}},
      {{0, 0, blocks(0x80)}}};
  const HostPlan plan = plan_host_reading(wanted, 0);
  EXPECT_THAT(plan.alone, ElementsAre(2));
  EXPECT_THAT(plan_host_reading(wanted, 1).alone, ElementsAre(2));
  ASSERT_EQ(plan.turns.size(), 3U);
  ASSERT_EQ(plan.turns[0].size(), 1U);
  ASSERT_EQ(plan.turns[1].size(), 1U) << "who has less to read so far";
  EXPECT_TRUE(plan.turns[2].empty());
  EXPECT_EQ(plan.turns[1][0].piece.number, 1);
  EXPECT_EQ(plan.turns[1][0].piece.blocks, blocks(0xff));
  ASSERT_EQ(plan.turns[1][0].clients.size(), 1U);
  EXPECT_EQ(plan.turns[1][0].clients[0].rank, 0);
  EXPECT_EQ(plan.turns[1][0].clients[0].blocks, blocks(0x0f));
}

// Returns three matrices of 16 MiB, so that there are pieces for all ranks.
State matrices() {
  State state;
  for (const char* name : {"a", "b", "optimizer.m.a"}) {
    state.push_back({name, DType::f32, {2048, 2048}, {}});
    state.back().bytes.resize(std::size_t{16} << 20);
    auto* words = reinterpret_cast<std::uint64_t*>(state.back().bytes.data());
    for (std::uint64_t i = 0; i < (std::uint64_t{2} << 20); ++i) {
      words[i] = mix64(i + state.size());
    }
  }
  return state;
}

// Loads on ranks with these host names and returns each rank's statistics.
std::vector<LoadStats> load_on(const std::vector<std::string>& hosts, const TempFolder& folder,
                               const State& state, const Cut& cut, int parts) {
  std::vector<LoadStats> stats(hosts.size());
  ThreadWorld(static_cast<int>(hosts.size()), hosts).run([&](Communicator& comm) {
    Blocks blocks = cut_state(state, cut, comm.rank() % parts, parts);
    const auto wanted = blocks.buffers;
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end() - 1, std::byte{0xA5});
    }
    const auto resumed = resume(comm, folder.path(), blocks.list);
    EXPECT_TRUE(resumed && blocks.buffers == wanted) << "rank " << comm.rank();
    stats[static_cast<std::size_t>(comm.rank())] = resumed->load;
  });
  return stats;
}

std::int64_t read_by_all(const std::vector<LoadStats>& stats) {
  return std::accumulate(stats.begin(), stats.end(), std::int64_t{0},
                         [](std::int64_t sum, const LoadStats& s) { return sum + s.read_bytes; });
}

const std::vector<std::string> kOneHost = {"a", "a", "a", "a"};

// Cuts the state as tensor parallelism by columns and by rows, optimizer shards, replicas and
// pipeline stages do. Four ranks of a host together read the checkpoint once, each about a quarter.
TEST(HostReading, TheHostReadsTheCheckpointOnce) {
  const State state = matrices();
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), state, 1, cut_nothing, 1).durable);
  const auto file = static_cast<std::int64_t>(
      std::filesystem::file_size(step_path(folder.path(), 1) / "shard-00000.safetensors"));
  struct Case {
    const char* name;
    Cut cut;
    int parts;
    bool is_shared = true;  // whether all ranks have equal shares
  };
  for (const Case& c : {Case{"tp 4", cut_columns, 4}, Case{"tp 2 x dp 2", cut_columns, 2},
                        Case{"dp 4", cut_nothing, 1}, Case{"rows", cut_rows, 4},
                        Case{"zero", cut_flat, 4}, Case{"stages", cut_by_tensor, 3, false}}) {
    const std::vector<LoadStats> stats = load_on(kOneHost, folder, state, c.cut, c.parts);
    EXPECT_EQ(read_by_all(stats), file) << c.name;
    for (const LoadStats& rank : stats) {
      EXPECT_LE(rank.read_bytes, c.is_shared ? file / 4 + 2 * kPieceBytes : file) << c.name;
    }
  }
}

// Saves with every cut, and loads by columns on 2 and on 4 ranks.
TEST(HostReading, WhateverTheCutItWasSavedWith) {
  const State state = large_state();
  for (const NamedCut& saved : all_cuts()) {
    TempFolder folder;
    ASSERT_TRUE(save_state(folder.path(), state, 1, saved.cut, saved.ranks).durable);
    const std::int64_t all = inspect_step(step_path(folder.path(), 1)).manifest->bytes();
    EXPECT_LE(read_by_all(load_on(kOneHost, folder, state, cut_columns, 4)), all) << saved.name;
    EXPECT_LE(read_by_all(load_on({"a", "a"}, folder, state, cut_columns, 2)), all) << saved.name;
  }
}

TEST(HostReading, EachHostReadsForItself) {
  const State state = large_state();
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), state, 1, cut_nothing, 1).durable);
  const std::int64_t all = inspect_step(step_path(folder.path(), 1)).manifest->bytes();
  EXPECT_EQ(read_by_all(load_on({"a", "b", "a", "b"}, folder, state, cut_nothing, 1)), 2 * all);
  EXPECT_EQ(read_by_all(load_on({"a", "b", "b"}, folder, state, cut_nothing, 1)), 2 * all);
  EXPECT_EQ(read_by_all(load_on({"a", "b"}, folder, state, cut_nothing, 1)), 2 * all);
}

// One rank reads the damaged block, and all ranks reject the step.
TEST(HostReading, DamageOnDiskGivesTheStepUpForAll) {
  const State good = large_state(1);
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), good, 1, cut_nothing, 1).durable);
  ASSERT_TRUE(save_state(folder.path(), large_state(2), 2, cut_nothing, 1).durable);
  const auto shard = step_path(folder.path(), 2) / "shard-00000.safetensors";
  flip_byte(shard, (std::int64_t{3} << 20) + 5);
  std::atomic<int> equal = 0;
  ThreadWorld(4, kOneHost).run([&](Communicator& comm) {
    Blocks blocks = cut_state(good, cut_columns, comm.rank(), 4);
    const auto wanted = blocks.buffers;
    const auto resumed = resume(comm, folder.path(), blocks.list).value();
    equal += blocks.buffers == wanted ? 1 : 0;
    EXPECT_EQ(resumed.manifest.meta.step, 1);
    ASSERT_EQ(resumed.skipped.size(), 1U);
    EXPECT_THAT(resumed.skipped[0], AllOf(HasSubstr("shard-00000.safetensors: block 3"),
                                          HasSubstr("digest"), HasSubstr("received from rank")));
  });
  EXPECT_EQ(equal, 4);
}

// The shard is removed after the folder was inspected and before the load.
TEST(HostReading, AShardThatIsGoneGivesTheStepUpForAll) {
  TempFolder folder;
  for (const int step : {1, 2}) {
    ASSERT_TRUE(save_state(folder.path(), large_state(1), step, cut_rows, 2).durable);
  }
  ThreadWorld(4, kOneHost).run([&](Communicator& comm) {
    Blocks blocks = cut_state(large_state(1), cut_columns, comm.rank(), 4);
    ResumeOptions options;
    options.accept = [&](const Manifest& manifest) {
      if (comm.rank() == 0 && manifest.meta.step == 2) {
        std::filesystem::remove(step_path(folder.path(), 2) / "shard-00001.safetensors");
      }
    };
    const auto resumed = resume(comm, folder.path(), blocks.list, options).value();
    EXPECT_EQ(resumed.manifest.meta.step, 1);
    EXPECT_THAT(resumed.skipped, ElementsAre(HasSubstr("shard-00001.safetensors")));
  });
}

}  // namespace
}  // namespace trireme
