// What the memory of all nodes and the disk hold of a run's steps, as every rank learns it at
// resume, and the steps that come into question. Plain values, the same on all ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/memory/node_map.h"

namespace trireme {

// A step folder in a node's memory.
struct InventoryEntry {
  MemoryStepName name;
  bool is_partner = false;
  std::string id;                    // contents_id() of its manifest
  std::vector<std::int64_t> shards;  // numbers in the manifest of those that are here
  std::filesystem::path path;        // on that node
};

struct NodeInventory {
  std::vector<InventoryEntry> entries;
  std::vector<std::string> problems;  // folders that are of no use, and why
  bool is_damaged = false;            // a manifest there is bad
};

// The run that resumes: another run's steps are none of its business, nor are those of a
// generation that is not older than its own.
struct RunIdentity {
  std::string run;              // as MemoryOptions::run
  std::int64_t generation = 0;  // 0: unknown, all are older
};

// Where a step's shards may lie in memory.
struct StepPlace {
  std::size_t node = 0;
  std::size_t entry = 0;  // of the node's inventory
};

// A step with all its copies: they hold the same bytes.
struct StepCandidate {
  MemoryStepName name;
  std::string id;
  std::vector<StepPlace> places;
  std::filesystem::path disk;  // empty: not there
  int manifest_rank = 0;       // a rank that has its manifest
};

class Inventory {
 public:
  // Collective. Every rank gives its node's memory and the run that it belongs to.
  Inventory(Communicator& comm, const NodeMap& nodes, const NodeMemory& own,
            const RunIdentity& identity);

  // Collective. Takes the checkpoint folder's steps in, as rank 0 sees them; only this step, if one
  // is given. PolicyError if one can't be read. NotFound if the given step is nowhere.
  void add_disk(const std::filesystem::path& folder, std::optional<std::int64_t> only);

  // The newest first: of the latest generation the largest step.
  const std::vector<StepCandidate>& candidates() const { return candidates_; }
  const std::vector<NodeInventory>& nodes() const { return inventories_; }
  // Whether the checkpoint folder holds any step (that was asked for), good or bad.
  bool disk_has_any() const { return disk_has_any_; }
  // Whether a node holds a manifest that is bad.
  bool memory_is_damaged() const { return memory_is_damaged_; }
  const std::vector<std::string>& problems() const { return problems_; }
  // On a candidate's manifest_rank: its manifest.
  const Manifest& manifest(const StepCandidate& candidate) const;

 private:
  void add(StepCandidate candidate);

  Communicator& comm_;
  std::vector<NodeInventory> inventories_;  // by node
  std::vector<StepCandidate> candidates_;
  std::vector<std::string> problems_;
  bool disk_has_any_ = false;
  bool memory_is_damaged_ = false;
  // Of those that this rank is the manifest_rank of: (id of the candidate, manifest).
  std::vector<std::pair<std::string, Manifest>> manifests_;
};

}  // namespace trireme
