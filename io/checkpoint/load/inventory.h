// Inventory lists the steps of a run that are in the memory of the nodes and on disk, and the
// candidates for a resume among them. All ranks build it together and have the same contents,
// except for the manifests.
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
  std::vector<std::int64_t> shards;  // indices in the manifest of the shards that are here
  std::filesystem::path path;        // on that node
};

struct NodeInventory {
  std::vector<InventoryEntry> entries;
  std::vector<std::string> problems;  // why folders are of no use
  bool is_damaged = false;            // true if a manifest there is damaged
};

// Identifies the run that resumes. Steps of other runs are ignored, and so are steps whose
// generation is not older than this run's.
struct RunIdentity {
  std::string run;              // as MemoryOptions::run
  std::int64_t generation = 0;  // 0 means unknown: every step counts as older
};

// A place in memory where a step's shards may lie.
struct StepPlace {
  std::size_t node = 0;
  std::size_t entry = 0;  // index in the node's inventory
};

// A step with all its copies, which hold the same bytes.
struct StepCandidate {
  MemoryStepName name;
  std::string id;
  std::vector<StepPlace> places;
  std::filesystem::path disk;   // empty if the step is not on disk
  int manifest_rank = 0;        // a rank that has the step's manifest
  std::string manifest_sha256;  // of the manifest's file on disk, as rank 0 read it; or empty
};

class Inventory {
 public:
  // Collective. Gathers what the nodes' memory holds. `own` is this rank's node, `identity` this
  // run.
  Inventory(Communicator& comm, const NodeMap& nodes, const NodeMemory& own,
            const RunIdentity& identity);

  // Collective. Adds the steps in the checkpoint folder, as rank 0 sees them. If `only` is given,
  // drops all steps but that one. Throws PolicyError if a step can't be read, and NotFound if the
  // given step is nowhere.
  void add_disk(const std::filesystem::path& folder, std::optional<std::int64_t> only);

  // Sorted from the newest: by decreasing generation, then by decreasing step.
  const std::vector<StepCandidate>& candidates() const { return candidates_; }
  const std::vector<NodeInventory>& nodes() const { return inventories_; }
  // Returns whether the checkpoint folder holds any step (or the given one), valid or damaged.
  bool disk_has_any() const { return disk_has_any_; }
  // Returns whether a node holds a damaged manifest.
  bool memory_is_damaged() const { return memory_is_damaged_; }
  const std::vector<std::string>& problems() const { return problems_; }
  // A manifest that this rank has read.
  struct Found {
    std::string id;  // of its candidate
    Manifest manifest;
    std::filesystem::path folder;
  };
  // Returns that of a candidate. Precondition: this rank is its manifest_rank.
  const Found& found(const StepCandidate& candidate) const;

 private:
  void add(StepCandidate candidate);

  Communicator& comm_;
  std::vector<NodeInventory> inventories_;  // by node
  std::vector<StepCandidate> candidates_;
  std::vector<std::string> problems_;
  bool disk_has_any_ = false;
  bool memory_is_damaged_ = false;
  std::vector<Found> found_;  // this rank is the manifest_rank of some of these candidates
};

}  // namespace trireme
