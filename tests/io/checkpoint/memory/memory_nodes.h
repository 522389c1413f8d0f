// Nodes simulates several nodes on this machine, each with a folder of its own, for the tests of
// checkpoints in memory. Ranks are threads.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/memory/memory_target.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {

class Nodes {
 public:
  explicit Nodes(int count) : Nodes(count, std::filesystem::path()) {}
  // Uses folders below `base`, which belongs to the caller.
  Nodes(int count, const std::filesystem::path& base)
      : base_(base.empty() ? folder_.path() : base), count_(count) {}

  int count() const { return count_; }
  const std::filesystem::path& base() const { return base_; }
  NodeMemory node(int number) const {
    const std::string name = "node-" + std::to_string(number);
    return {base_ / name, name};
  }
  // Returns the checkpoint folder that all nodes share.
  std::filesystem::path disk() const { return base_ / "checkpoints"; }
  int node_of(int rank, int ranks) const { return rank * count_ / ranks; }
  ThreadWorld world(int ranks) const {
    std::vector<std::string> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.push_back("host-" + std::to_string(node_of(rank, ranks)));
    }
    return ThreadWorld(ranks, hosts);
  }
  // Returns the folder of a step in the own memory of node `number`.
  std::filesystem::path own_step(int number, std::int64_t step, std::int64_t generation) const {
    return node(number).own() / MemoryStepName{step, generation}.to_string();
  }
  std::filesystem::path copied_step(int from, int to, std::int64_t step,
                                    std::int64_t generation) const {
    return node(to).partner() / node(from).name / MemoryStepName{step, generation}.to_string();
  }
  // Does the agents' work: copies a step to the partner and marks it as copied.
  void copy_to_partner(int from, int to, std::int64_t step, std::int64_t generation) const {
    const std::filesystem::path own = own_step(from, step, generation);
    const std::filesystem::path copy = copied_step(from, to, step, generation);
    std::filesystem::create_directories(copy.parent_path());
    std::filesystem::copy(own, copy, std::filesystem::copy_options::recursive);
    std::filesystem::rename(own / kWantsCopyName, own / kCopiedName);
  }
  void lose(int number) const { std::filesystem::remove_all(node(number).folder); }

 private:
  TempFolder folder_;
  std::filesystem::path base_;
  int count_;
};

inline MemoryOptions memory_options(const NodeMemory& node, std::int64_t generation = 1) {
  MemoryOptions options;
  options.node = node;
  options.generation = generation;
  options.run = "run";
  options.copy_threads = 2;
  return options;
}

// Holds a rank's target in memory and its writer.
struct MemorySaver {
  MemorySaver(Communicator& comm, const NodeMap& nodes, const MemoryOptions& options)
      : target(comm, nodes, options), writer(comm, target) {}
  MemoryTarget target;
  CheckpointWriter writer;
};

// Starts a run on the nodes, each of whose ranks calls `work`.
using Work = std::function<void(Communicator&, MemorySaver&)>;
inline void run(const Nodes& nodes, int ranks, const Work& work, std::int64_t generation = 1,
                std::optional<MemoryStepName> resumed = std::nullopt) {
  nodes.world(ranks).run([&](Communicator& comm) {
    const NodeMemory node = nodes.node(nodes.node_of(comm.rank(), ranks));
    const NodeMap map = map_nodes(comm, node);
    MemorySaver memory(comm, map, memory_options(node, generation));
    EXPECT_EQ(memory.target.open(resumed), "");
    work(comm, memory);
  });
}

inline SaveOutcome save(Communicator& comm, MemorySaver& memory, std::int64_t step,
                        const State& state = small_state()) {
  const Blocks blocks = cut_state(state, cut_flat, comm.rank(), comm.size());
  memory.writer.save(meta_of(step), blocks.list);
  return memory.writer.finish().value();
}

// In a run of its own, saves the states as steps 1, 2, ... and returns rank 0's outcomes.
inline std::vector<SaveOutcome> save_in_memory(const Nodes& nodes, const std::vector<State>& states,
                                               const Cut& cut, int ranks,
                                               std::int64_t generation = 1, bool partner = true) {
  std::vector<SaveOutcome> outcomes;
  nodes.world(ranks).run([&](Communicator& comm) {
    MemoryOptions options =
        memory_options(nodes.node(nodes.node_of(comm.rank(), ranks)), generation);
    options.partner = partner;
    const NodeMap map = map_nodes(comm, options.node);
    MemorySaver memory(comm, map, options);
    EXPECT_EQ(memory.target.open(std::nullopt), "");
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Blocks blocks = cut_state(states[i], cut, comm.rank(), ranks);
      if (i == 0) {
        EXPECT_EQ(memory.target.reserve(blocks.list), "");
      }
      EXPECT_FALSE(
          memory.writer.save(meta_of(static_cast<std::int64_t>(i) + 1), blocks.list).has_value());
      const auto outcome = memory.writer.finish();
      if (comm.rank() == 0) {
        outcomes.push_back(outcome.value());
      }
    }
  });
  return outcomes;
}

// Loads with `ranks` ranks on the nodes, compares with `expected`, and returns rank 0's result.
inline LoadedState load_nearest(const Nodes& nodes, const State& expected, const Cut& cut,
                                int ranks, ResumeOptions options = {}) {
  LoadedState result;
  std::atomic<int> equal = 0;
  nodes.world(ranks).run([&](Communicator& comm) {
    Blocks blocks = cut_state(expected, cut, comm.rank(), ranks);
    const auto wanted = blocks.buffers;
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end() - 1, std::byte{0xA5});
    }
    ResumeOptions mine = options;
    mine.node = nodes.node(nodes.node_of(comm.rank(), ranks));
    const NodeMap map = map_nodes(comm, mine.node);
    mine.nodes = &map;
    mine.identity.run = "run";
    const auto resumed = resume(comm, nodes.disk(), blocks.list, mine);
    equal += resumed && blocks.buffers == wanted ? 1 : 0;
    if (comm.rank() == 0) {
      result.resumed = resumed;
    }
  });
  result.equal = equal == ranks;
  return result;
}

inline void flip_byte(const std::filesystem::path& file, std::int64_t offset) {
  File opened = File::open_to_update(file);
  char byte = 0;
  opened.read_exactly_at(offset, &byte, 1);
  byte = static_cast<char>(byte ^ 0x10);
  opened.write_at(offset, &byte, 1);
}

inline std::int64_t bytes_from(const LoadedState& loaded, CopyKind kind) {
  return loaded.resumed->bytes[static_cast<std::size_t>(kind)];
}

}  // namespace trireme
