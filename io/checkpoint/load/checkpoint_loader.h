// CheckpointLoader: the blocks that the ranks ask for, out of all copies of one step, each from the
// nearest that is good (shard_copies.h). Only the digest blocks that hold wanted bytes are read.
// Every digest is compared where the bytes are to be used; a piece that is damaged, or gone, is
// fetched again from the next copy. What several ranks of a host want from the disk is read once
// (host_reading.h). Used on the thread that owns the communicator; files are read on several.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/load/exchange.h"
#include "io/checkpoint/load/host_reading.h"
#include "io/checkpoint/load/shard_copies.h"

namespace trireme {

struct LoadStats {
  std::int64_t wanted_bytes = 0;
  std::int64_t read_bytes = 0;      // by this rank, or for it from other nodes' memory
  std::int64_t received_bytes = 0;  // from files, by other ranks of its host
  double seconds = 0;
  std::array<std::int64_t, kCopyKinds> bytes = {};  // by kind of copy
  std::vector<std::string> repairs = {};            // what was damaged; a few
};

class CheckpointLoader {
 public:
  // From all copies of a step. Communicator and manifest outlive the loader.
  CheckpointLoader(Communicator& comm, const NodeMap& nodes, const Inventory& inventory,
                   const StepCandidate& step, const Manifest& manifest, const ShardIo& io);
  // From one folder, for one process: load() throws what it meets (DataError for damage).
  CheckpointLoader(Communicator& self, const std::filesystem::path& folder,
                   const Manifest& manifest, const ShardIo& io);

  // "" or which shards no copy has; the same on all ranks.
  std::string missing() const { return missing_shards(copies_, manifest_); }
  // Collective. The blocks match the manifest. "" or what keeps any rank from having its blocks:
  // the step is of no use, and the blocks hold undefined bytes. PolicyError on all ranks if one may
  // not read a copy.
  std::string load(std::span<const TensorBlock> blocks);
  const LoadStats& stats() const { return stats_; }

 private:
  // A piece on its way.
  struct Fetch {
    Piece piece;
    std::size_t copy = 0;  // which of the shard's copies is to be tried
    bool done = false;
    std::string fault = {};  // of the latest try
  };
  using Fetches = std::vector<Fetch*>;
  // A file that this rank reads, or why it can't.
  struct OpenShard {
    std::optional<ShardReader> reader;
    std::string fault;
  };

  const StoredShard& shard_of(const Piece& piece) const {
    return manifest_.shards[static_cast<std::size_t>(piece.shard)];
  }
  const ShardCopy* next_copy(const Fetch& fetch) const;
  Fetches due(std::vector<Fetch>& all, bool (ShardCopy::*wanted)() const) const;
  bool is_over(const std::vector<Fetch>& all, std::string& faults);
  void join_host();
  void read_files(const Fetches& due);
  void read_file(Fetch& fetch, const OpenShard& shard, std::byte* buffer) const;
  const OpenShard& open_shard(const std::filesystem::path& folder, std::int64_t shard);
  void read_far(const Fetches& due);
  void serve(const PieceRequest& request, std::byte* buffer) const;
  void take_far(Fetch& fetch, std::byte* buffer) const;
  void read_disk(const Fetches& due);
  void read_shared(const HostPlan& plan, const Fetches& due);
  std::string read_turn(const ReadingTurn& turn, std::byte* buffer) const;
  void take_shared(Fetch& fetch, int reader, const std::byte* buffer);
  std::string transit_fault(const Fetch& fetch, std::int64_t block, const std::byte* at,
                            int sender) const;
  void note(const Fetches& tried);
  void note_fault(Fetch& fetch);

  Communicator& comm_;
  const Manifest& manifest_;
  ShardIo io_;
  std::filesystem::path disk_;  // the step's folder there; empty: none
  bool throws_ = false;         // errors, rather than try another copy
  ShardCopies copies_;
  std::vector<InventoryEntry> served_;  // this node's folders, of which other nodes may ask
  std::vector<int> host_ranks_;         // of this host
  std::unique_ptr<Communicator> host_;  // of them; null where that is one
  std::map<std::pair<std::string, std::int64_t>, OpenShard> files_;  // by folder and shard
  std::string refusal_;
  LoadStats stats_;
};

// Fills the blocks from one step's folder, for this process alone. ConfigError with all mismatches;
// DataError for damage, after which the blocks hold undefined bytes.
LoadStats load_step(const std::filesystem::path& folder, const Manifest& manifest,
                    std::span<const TensorBlock> blocks, const ShardIo& io = {});

}  // namespace trireme
