// Tests resuming from the nearest copies, with lost nodes, damage in memory, and steps on disk and
// in memory.
#include "io/checkpoint/load/checkpoint_loader.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/checkpoint/memory/memory_nodes.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Saves two steps of 4 ranks in the memory of 2 nodes. copy() makes partner copies of the newer one
// on both nodes.
class TwoNodes : public testing::Test {
 protected:
  void SetUp() override {
    const auto outcomes = save_in_memory(nodes_, {old_, state_}, cut_flat, 4);
    ASSERT_TRUE(outcomes[0].durable && outcomes[1].durable);
  }
  void copy() {
    nodes_.copy_to_partner(0, 1, 2, 1);
    nodes_.copy_to_partner(1, 0, 2, 1);
  }
  fs::path shard(int node, int number, std::int64_t step = 2) const {
    return nodes_.own_step(node, step, 1) / shard_file_name(number);
  }
  fs::path copied_shard(int node, int number) const {
    return nodes_.copied_step(1 - node, node, 2, 1) / shard_file_name(number);
  }

  const Nodes nodes_{2};
  const State old_ = large_state(1);
  const State state_ = large_state(2);
};

TEST_F(TwoNodes, TheSameLayoutReadsItsOwnMemory) {
  const LoadedState loaded = load_nearest(nodes_, state_, cut_flat, 4);
  ASSERT_TRUE(loaded.equal);
  EXPECT_TRUE(loaded.resumed->from_memory);
  EXPECT_TRUE(loaded.resumed->folder.empty());
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
  EXPECT_GT(bytes_from(loaded, CopyKind::own), 0);
  EXPECT_EQ(bytes_from(loaded, CopyKind::disk), 0);
  EXPECT_THAT(loaded.resumed->skipped, IsEmpty());
  EXPECT_THAT(loaded.resumed->source(), HasSubstr("step 2"));
}

TEST_F(TwoNodes, AnyLayoutReadsThroughTheCommunicator) {
  std::int64_t moved = 0;
  for (const NamedCut& cut : all_cuts()) {
    const LoadedState loaded = load_nearest(nodes_, state_, cut.cut, cut.ranks + 1);
    EXPECT_TRUE(loaded.equal) << cut.name;
    moved += bytes_from(loaded, CopyKind::other_own);
  }
  EXPECT_GT(moved, 0);
}

TEST_F(TwoNodes, ALostNodeIsMadeGoodByItsPartner) {
  copy();
  nodes_.lose(0);
  for (const int ranks : {2, 3, 8}) {
    // The ranks run on the node that is left, as node 1 of 2, and on an empty one in place of the
    // other.
    const LoadedState loaded = load_nearest(nodes_, state_, cut_rows, ranks);
    ASSERT_TRUE(loaded.equal) << ranks;
    EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
    EXPECT_THAT(loaded.resumed->repairs, IsEmpty());
  }
}

// The ranks run only on the node that is left, whatever their number.
TEST_F(TwoNodes, OneNodeIsEnough) {
  copy();
  nodes_.lose(0);
  fs::rename(nodes_.node(1).folder, nodes_.node(0).folder);
  const Nodes one(1, nodes_.base());
  for (const int ranks : {1, 2, 8}) {
    const LoadedState loaded = load_nearest(one, state_, cut_flat, ranks);
    ASSERT_TRUE(loaded.equal) << ranks;
    EXPECT_GT(bytes_from(loaded, CopyKind::own), 0);
    EXPECT_GT(bytes_from(loaded, CopyKind::partner), 0);
    EXPECT_EQ(bytes_from(loaded, CopyKind::other_own), 0);
  }
}

// Row 15 of docs/faults.md: a node without copies is lost, so the disk is used.
TEST_F(TwoNodes, WithoutACopyTheDiskHasToDo) {
  ASSERT_TRUE(save_state(nodes_.disk(), old_, 1, cut_rows, 3).durable);
  nodes_.lose(0);
  const LoadedState loaded = load_nearest(nodes_, old_, cut_columns, 4);
  ASSERT_TRUE(loaded.equal);
  EXPECT_FALSE(loaded.resumed->from_memory);
  EXPECT_EQ(loaded.resumed->folder, step_path(nodes_.disk(), 1));
  EXPECT_THAT(loaded.resumed->skipped,
              Contains(HasSubstr("2 of 4 shards can be found neither in the memory of a node")));
}

TEST_F(TwoNodes, NothingWholeAnywhereIsAFreshStart) {
  nodes_.lose(0);
  std::vector<std::string> reported;
  ResumeOptions options;
  std::mutex mutex;
  options.nothing_whole = [&](const std::vector<std::string>& skipped) {
    const std::lock_guard<std::mutex> lock(mutex);
    reported = skipped;
  };
  EXPECT_FALSE(load_nearest(nodes_, state_, cut_flat, 4, options).resumed.has_value());
  EXPECT_EQ(reported.size(), 2U);
}

// Every shard is present, but no step is valid: that is damage and not loss.
TEST_F(TwoNodes, DamageInMemoryAloneIsNoFreshStart) {
  for (const int step : {1, 2}) {
    flip_byte(shard(1, 2, step), 70'000);
  }
  EXPECT_THROW(load_nearest(nodes_, state_, cut_flat, 4), DataError);
}

TEST_F(TwoNodes, ADamagedManifestInMemoryIsNoFreshStart) {
  nodes_.lose(0);
  flip_byte(nodes_.own_step(1, 2, 1) / "manifest.json", 40);
  EXPECT_THROW(load_nearest(nodes_, state_, cut_flat, 4), DataError);
}

// If a checkpoint on disk is damaged, the run must not start anew, whatever memory has lost.
TEST_F(TwoNodes, ABadDiskIsNoFreshStart) {
  nodes_.lose(0);
  ASSERT_TRUE(save_state(nodes_.disk(), old_, 1).durable);
  fs::remove(step_path(nodes_.disk(), 1) / "manifest.json");
  EXPECT_THROW(load_nearest(nodes_, state_, cut_flat, 4), DataError);
}

TEST_F(TwoNodes, MemoryIsNewerThanTheDisk) {
  ASSERT_TRUE(save_state(nodes_.disk(), old_, 1).durable);
  const LoadedState loaded = load_nearest(nodes_, state_, cut_flat, 4);
  EXPECT_TRUE(loaded.equal);
  EXPECT_TRUE(loaded.resumed->from_memory);
}

TEST_F(TwoNodes, TheDiskIsNewerThanMemory) {
  const State newer = large_state(3);
  ASSERT_TRUE(save_state(nodes_.disk(), newer, 3).durable);
  const LoadedState loaded = load_nearest(nodes_, newer, cut_flat, 4);
  EXPECT_TRUE(loaded.equal);
  EXPECT_FALSE(loaded.resumed->from_memory);
}

// Bytes are flipped in a rank's own memory, in another node's, and in a copy.
TEST_F(TwoNodes, ADamagedBlockComesFromAnotherCopy) {
  copy();
  flip_byte(shard(0, 0), 5000);
  flip_byte(shard(0, 1), 1 << 20);
  flip_byte(copied_shard(0, 3), 100'000);
  for (const Cut& cut : {Cut(cut_flat), Cut(cut_rows), Cut(cut_columns)}) {
    const LoadedState loaded = load_nearest(nodes_, state_, cut, 4);
    ASSERT_TRUE(loaded.equal);
    EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
    ASSERT_FALSE(loaded.resumed->repairs.empty());
    EXPECT_THAT(loaded.resumed->repairs[0], HasSubstr("shard-0000"));
    EXPECT_THAT(loaded.resumed->repairs[0], HasSubstr("digest"));
  }
}

TEST_F(TwoNodes, DamageInEveryCopyGivesTheStepUp) {
  copy();
  flip_byte(shard(1, 2), 70'000);
  flip_byte(copied_shard(0, 2), 70'001);
  const LoadedState loaded = load_nearest(nodes_, old_, cut_rows, 3);
  ASSERT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 1);
  EXPECT_THAT(loaded.resumed->skipped,
              Contains(testing::AllOf(HasSubstr("step 2 in memory"), HasSubstr("digest"))));
}

// Flips a byte in several regions of a shard, up to the last byte.
TEST_F(TwoNodes, EveryRegionIsUnderADigest) {
  const auto bytes = static_cast<std::int64_t>(fs::file_size(shard(0, 0)));
  for (const std::int64_t at : {std::int64_t{4096}, bytes / 2, bytes - 1}) {
    flip_byte(shard(0, 0), at);
    const LoadedState loaded = load_nearest(nodes_, old_, cut_rows, 2);
    EXPECT_TRUE(loaded.equal) << at;
    EXPECT_EQ(loaded.resumed->manifest.meta.step, 1) << at;
    flip_byte(shard(0, 0), at);
  }
  EXPECT_TRUE(load_nearest(nodes_, state_, cut_rows, 2).equal);
}

TEST_F(TwoNodes, AMissingShardComesFromItsCopyOrTheDisk) {
  fs::remove(shard(0, 1));
  fs::resize_file(shard(1, 3), 5000);
  EXPECT_EQ(load_nearest(nodes_, old_, cut_flat, 4).resumed->manifest.meta.step, 1);
  // The same step, saved to disk with the same cut, has the same files.
  ASSERT_TRUE(save_state(nodes_.disk(), state_, 2, cut_flat, 4).durable);
  const LoadedState loaded = load_nearest(nodes_, state_, cut_flat, 4);
  ASSERT_TRUE(loaded.equal);
  EXPECT_GT(bytes_from(loaded, CopyKind::own), 0);
  EXPECT_GT(bytes_from(loaded, CopyKind::disk), 0);
  EXPECT_EQ(loaded.resumed->folder, step_path(nodes_.disk(), 2));
}

// The ranks of a node died before it renamed its folder, so the step is whole nowhere.
TEST_F(TwoNodes, AStepThatSomeNodesHaveNotRenamedIsNone) {
  fs::rename(nodes_.own_step(1, 2, 1), nodes_.node(1).own() / ".tmp-2-1");
  const LoadedState loaded = load_nearest(nodes_, old_, cut_rows, 3);
  ASSERT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 1);
}

TEST_F(TwoNodes, ABadManifestOfOneNodeCostsItsCopies) {
  copy();
  flip_byte(nodes_.own_step(0, 2, 1) / "manifest.json", 100);
  const LoadedState loaded = load_nearest(nodes_, state_, cut_rows, 3);
  ASSERT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
  EXPECT_THAT(loaded.resumed->skipped, Contains(HasSubstr("memory of node-0")));
}

TEST_F(TwoNodes, AWantedStepIsFoundInMemory) {
  ResumeOptions options;
  options.step = 1;
  EXPECT_TRUE(load_nearest(nodes_, old_, cut_rows, 3, options).equal);
  options.step = 5;
  EXPECT_THROW(load_nearest(nodes_, old_, cut_rows, 3, options), NotFound);
}

// The newest step is that of the latest generation, not the largest one.
TEST_F(TwoNodes, ALaterGenerationGoesFirst) {
  const State other = large_state(8);
  ASSERT_TRUE(
      save_in_memory(Nodes(2, nodes_.base() / "later"), {other}, cut_flat, 4, 2)[0].durable);
  for (int node = 0; node < 2; ++node) {
    fs::rename(Nodes(2, nodes_.base() / "later").own_step(node, 1, 2), nodes_.own_step(node, 1, 2));
  }
  const LoadedState loaded = load_nearest(nodes_, other, cut_rows, 3);
  ASSERT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed->manifest.generation, 2);
}

TEST_F(TwoNodes, StepsOfAnotherRunAreLeftAlone) {
  const auto load_as = [&](const RunIdentity& identity) {
    bool any = false;
    nodes_.world(4).run([&](Communicator& comm) {
      const Blocks blocks = cut_state(state_, cut_flat, comm.rank(), 4);
      ResumeOptions options;
      options.node = nodes_.node(nodes_.node_of(comm.rank(), 4));
      const NodeMap map = map_nodes(comm, options.node);
      options.nodes = &map;
      options.identity = identity;
      const auto resumed = resume(comm, nodes_.disk(), blocks.list, options);
      if (comm.rank() == 0) {
        any = resumed.has_value();
      }
    });
    return any;
  };
  EXPECT_TRUE(load_as({"run", 2}));
  EXPECT_FALSE(load_as({"another run", 2}));
  EXPECT_FALSE(load_as({"run", 1})) << "the run's own generation, or a later one's";
}

// If a rank's node has no memory for checkpoints, the rank gets everything from the others.
TEST_F(TwoNodes, RanksWithoutMemoryAreServed) {
  std::atomic<int> equal = 0;
  nodes_.world(6).run([&](Communicator& comm) {
    Blocks blocks = cut_state(state_, cut_rows, comm.rank(), 6);
    const auto wanted = blocks.buffers;
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end() - 1, std::byte{0xA5});
    }
    ResumeOptions options;
    options.node =
        comm.rank() % 3 == 1 ? NodeMemory() : nodes_.node(nodes_.node_of(comm.rank(), 6));
    const NodeMap map = map_nodes(comm, options.node);
    options.nodes = &map;
    options.identity.run = "run";
    const auto resumed = resume(comm, nodes_.disk(), blocks.list, options);
    equal += resumed && blocks.buffers == wanted ? 1 : 0;
  });
  EXPECT_EQ(equal, 6);
}

}  // namespace
}  // namespace trireme
