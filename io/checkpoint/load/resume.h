// Resuming: all ranks load the same step, the newest one that every block of is found good, from
// the nearest copies: the nodes' memory before the disk (checkpoint_loader.h).
//
// All ranks learn what the nodes hold, and what rank 0 sees on disk; copies of one step are one
// candidate. The newest goes first, of the latest generation the largest step. Each candidate's
// manifest is sent to all; every rank loads its blocks, comparing digests; if any rank can't, all
// give the step up and try the next. A checkpoint of another model or run is no damage: that is a
// ConfigError, and no older step is tried.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/load/checkpoint_loader.h"

namespace trireme {

struct ResumeOptions {
  std::optional<std::int64_t> step = {};  // only this one
  ShardIo io = {};
  // Throws ConfigError if this run may not go on from that checkpoint (fingerprint.h says what
  // differs). Called on all ranks alike.
  std::function<void(const Manifest&)> accept = {};
  // Told, on all ranks, what was of no use, when there is nothing to go on from.
  std::function<void(const std::vector<std::string>&)> nothing_whole = {};
  NodeMemory node = {};            // this rank's; none: the disk alone
  const NodeMap* nodes = nullptr;  // of all ranks, if there is any node memory
  RunIdentity identity = {};
};

struct Resumed {
  std::filesystem::path folder;  // of the step on disk; empty: it is in memory only
  Manifest manifest;
  std::vector<std::string> skipped;  // what was not used, and why
  std::vector<std::string> repairs;  // damage that another copy made good; with its rank
  LoadStats load;                    // this rank's
  // Bytes by kind of copy, of all ranks.
  std::array<std::int64_t, kCopyKinds> bytes = {};
  bool from_memory = false;  // some of them
  // "memory of step 120 (other nodes' memory 1.2 GiB)", or the folder on disk.
  std::string source() const;
};

// Collective. Nothing if there is no checkpoint, neither on disk nor in memory, where those that
// have lost shards with their nodes are none: what is left of them holds nobody up. NotFound if the
// wanted step is nowhere; PolicyError if a rank may not read one; DataError with all reasons if
// there are some, and all are bad: the run must not start from scratch by mistake. After an error
// the blocks hold undefined bytes.
std::optional<Resumed> resume(Communicator& comm, const std::filesystem::path& folder,
                              std::span<const TensorBlock> blocks,
                              const ResumeOptions& options = {});

}  // namespace trireme
