#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/verify.h"
#include "tests/io/checkpoint/encrypted_state.h"
#include "tests/io/checkpoint/memory/memory_nodes.h"

namespace trireme {
namespace {

class EncryptedMemory : public testing::Test {
 protected:
  // Saves steps 1 and 2 in memory, and step 2 on disk from there.
  void save_steps() const {
    nodes_.world(kRanks).run([&](Communicator& comm) {
      StepKeys keys(comm, {{key_}, false});
      keys.prepare_to_save();
      DiskTarget disk(comm, options_for(nodes_.disk()));
      CheckpointWriter disk_writer(comm, disk);
      MemoryOptions options =
          memory_options(nodes_.node(nodes_.node_of(comm.rank(), kRanks)), disk.generation());
      options.encrypts = true;
      const NodeMap map = map_nodes(comm, options.node);
      MemorySaver memory(comm, map, options);
      EXPECT_EQ(memory.target.open(std::nullopt), "");
      const Blocks blocks = cut_state(state_, cut_flat, comm.rank(), kRanks);
      EXPECT_EQ(memory.target.reserve(blocks.list), "");
      for (std::int64_t step = 1; step <= 2; ++step) {
        const auto key = keys.next();
        memory.writer.save(meta_of(step), blocks.list, nullptr, key);
        if (step == 2) {
          disk_writer.save(meta_of(step), memory.target.snapshot().value(), key);
          memory.target.pin_latest();
        }
        EXPECT_TRUE(memory.writer.finish()->durable);
      }
      EXPECT_TRUE(disk_writer.finish()->durable);
      EXPECT_EQ(disk.snapshot_bytes(), 0) << "no memory of its own";
      EXPECT_GT(memory.target.plain_bytes(), 0);
    });
  }
  LoadedState load(const std::vector<std::string>& uris) const {
    LoadedState result;
    std::atomic<int> equal = 0;
    nodes_.world(kRanks).run([&](Communicator& comm) {
      Blocks blocks = cut_state(state_, cut_rows, comm.rank(), kRanks);
      const auto wanted = blocks.buffers;
      for (auto& buffer : blocks.buffers) {
        std::fill(buffer.begin(), buffer.end() - 1, std::byte{0xA5});
      }
      StepKeys keys(comm, {uris, false});
      ResumeOptions options;
      options.keys = &keys;
      options.node = nodes_.node(nodes_.node_of(comm.rank(), kRanks));
      const NodeMap map = map_nodes(comm, options.node);
      options.nodes = &map;
      options.identity = {"run", 0};
      const auto resumed = resume(comm, nodes_.disk(), blocks.list, options);
      equal += resumed && blocks.buffers == wanted ? 1 : 0;
      if (comm.rank() == 0) {
        result.resumed = resumed;
      }
    });
    result.equal = equal == kRanks;
    return result;
  }

  static constexpr int kRanks = 4;
  const Nodes nodes_{2};
  TempFolder folder_;
  const std::string key_ = new_key(folder_.path(), "site");
  const State state_ = large_state();
};

TEST_F(EncryptedMemory, HoldsNoPlainText) {
  save_steps();
  for (const LogicalTensor& tensor : state_) {
    for (int node = 0; node < 2; ++node) {
      EXPECT_FALSE(contains_bytes(nodes_.node(node).folder, canary_of(tensor))) << tensor.name;
    }
    EXPECT_FALSE(contains_bytes(nodes_.disk(), canary_of(tensor))) << tensor.name;
  }
  // Memory and disk hold the same bytes.
  for (const MemoryStep& step : list_memory_steps(nodes_.node(0))) {
    if (step.name.step == 2) {
      EXPECT_EQ(contents_id(*step.manifest),
                contents_id(*inspect_step(step_path(nodes_.disk(), 2)).manifest));
    }
  }
}

TEST_F(EncryptedMemory, ResumesFromTheNearestCopy) {
  save_steps();
  const LoadedState loaded = load({key_});
  ASSERT_TRUE(loaded.resumed.has_value());
  EXPECT_TRUE(loaded.equal);
  EXPECT_TRUE(loaded.resumed->from_memory);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
  nodes_.copy_to_partner(0, 1, 2, 1);
  nodes_.lose(0);
  EXPECT_TRUE(load({key_}).equal);
  nodes_.lose(1);
  const LoadedState from_disk = load({key_});
  EXPECT_TRUE(from_disk.equal);
  EXPECT_FALSE(from_disk.resumed->from_memory);
}

TEST_F(EncryptedMemory, NeedsTheKey) {
  save_steps();
  EXPECT_THROW((void)load({}), PolicyError);
  EXPECT_THROW((void)load({new_key(folder_.path(), "other")}), PolicyError);
}

}  // namespace
}  // namespace trireme
