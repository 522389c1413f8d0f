// Resuming loads the same step on all ranks: the newest step all of whose blocks are good, from the
// nearest copies, with the nodes' memory before the disk (checkpoint_loader.h).
//
// All ranks learn what the nodes hold and what rank 0 sees on disk; copies of one step form one
// candidate. Candidates are tried from the newest: the largest step of the latest generation first.
// A candidate's manifest is sent to all ranks, and every rank loads its blocks and compares
// digests. If any rank can't, all ranks drop the step and try the next one. A checkpoint of another
// model or run is not damage: it causes a ConfigError, and no older step is tried.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/load/checkpoint_loader.h"
#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"

namespace trireme {

struct ResumeOptions {
  std::optional<std::int64_t> step = {};  // if set, only this step is tried
  ShardIo io = {};
  // Throws ConfigError if this run may not continue from the checkpoint (fingerprint.h compares
  // them), and DataError if the manifest contradicts itself: then the step is skipped like a
  // damaged one. Called on all ranks alike.
  std::function<void(const Manifest&)> accept = {};
  // Returns whether the manifest's configuration describes the run's own model. If so, tensors that
  // do not fit the run contradict that configuration, and the step is skipped like a damaged one;
  // otherwise they cause a ConfigError. Called on all ranks alike, after accept.
  std::function<bool(const Manifest&)> is_same_model = {};
  // Called on all ranks when the blocks of a step are loaded. Returns on all ranks alike "", or why
  // the step is of no use; then it is skipped like a damaged one.
  std::function<std::string()> fault_of_loaded = {};
  // Called on all ranks, with the reasons, if every step found was of no use and the run starts
  // anew.
  std::function<void(const std::vector<std::string>&)> nothing_whole = {};
  StepKeys* keys = nullptr;        // opens encrypted checkpoints; null: they are refused
  NodeMemory node = {};            // this rank's node; by default only the disk is used
  const NodeMap* nodes = nullptr;  // nodes of all ranks; null without node memory
  RunIdentity identity = {};
};

struct Resumed {
  std::filesystem::path folder;  // the step's folder on disk; empty if it is in memory only
  std::string manifest_sha256;   // of the manifest's file there, as it was read for this load
  Manifest manifest;
  std::vector<std::string> skipped;  // steps that were not used, and why
  // Steps on disk among these whose manifest is valid but whose contents are damaged.
  std::vector<StepIdentity> damaged;
  std::vector<std::string> repairs;  // damage that another copy repaired, with the rank
  LoadStats load;                    // statistics of this rank
  // Bytes by kind of copy, summed over all ranks.
  std::array<std::int64_t, kCopyKinds> bytes = {};
  bool from_memory = false;  // whether some of these bytes came from memory
  // Returns "memory, step 120 (1.2 GiB from other nodes' memory)", or the folder on disk.
  std::string source() const;
};

// Collective. Returns nothing if there is no checkpoint, neither on disk nor in memory; steps in
// memory that have lost shards together with their nodes do not count. Throws NotFound if the
// requested step is nowhere, PolicyError if a rank may not read a copy or no key opens it, and
// DataError with all reasons if there are checkpoints but all are damaged, since the run must not
// start anew by mistake. After an error the blocks hold undefined bytes.
std::optional<Resumed> resume(Communicator& comm, const std::filesystem::path& folder,
                              std::span<const TensorBlock> blocks,
                              const ResumeOptions& options = {});

}  // namespace trireme
