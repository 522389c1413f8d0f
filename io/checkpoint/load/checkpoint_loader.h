// CheckpointLoader loads the blocks that the ranks want from all copies of one step, preferring the
// nearest good copy (shard_copies.h). It reads only the digest blocks that hold wanted bytes. The
// rank that uses a block compares its digest, and the rank that opens a shard compares its header
// with the manifest; a piece that is damaged or missing is fetched again from the next copy. What
// several ranks of a host want from the disk is read once (host_reading.h). The thread that owns
// the communicator makes all calls; files are read on several threads.
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
#include "io/checkpoint/shard_contents.h"
#include "io/checkpoint/staging.h"

namespace trireme {

struct LoadStats {
  std::int64_t wanted_bytes = 0;
  std::int64_t read_bytes = 0;      // read by this rank, or sent to it from other nodes' memory
  std::int64_t received_bytes = 0;  // read from files by other ranks of its host
  double seconds = 0;
  std::array<std::int64_t, kCopyKinds> bytes = {};  // by kind of copy
  // Describes the first few damaged or missing pieces.
  std::vector<std::string> repairs = {};
};

class CheckpointLoader {
 public:
  // Loads from all copies of a step. Communicator and manifest must outlive the loader.
  CheckpointLoader(Communicator& comm, const NodeMap& nodes, const Inventory& inventory,
                   const StepCandidate& step, const Manifest& manifest, const ShardIo& io);
  // Loads from one folder, in one process. load() throws any error (DataError for damage) instead
  // of trying another copy.
  CheckpointLoader(Communicator& self, const std::filesystem::path& folder,
                   const Manifest& manifest, const ShardIo& io);

  // Returns which shards have no copy, or "". The same on all ranks.
  std::string missing() const { return missing_shards(copies_, manifest_); }
  // Collective. Precondition: the blocks match the manifest. Returns "" if all ranks have their
  // blocks, else why some rank does not: then the step is of no use, and the blocks hold undefined
  // bytes. Throws PolicyError on all ranks if one of them may not read a copy.
  std::string load(std::span<const TensorBlock> blocks);
  const LoadStats& stats() const { return stats_; }

 private:
  // A piece that is being fetched.
  struct Fetch {
    Piece piece;
    std::size_t copy = 0;  // index of the shard's copy to try next
    bool done = false;
    std::string fault = {};  // of the latest attempt
  };
  using Fetches = std::vector<Fetch*>;
  // A file that this rank reads, or the reason why it can't.
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
  void check_header(const ShardReader& reader, std::int64_t shard) const;
  const OpenShard& open_shard(const std::filesystem::path& folder, std::int64_t shard);
  void read_far(const Fetches& due);
  void serve(const PieceRequest& request, std::byte* buffer) const;
  void take_far(Fetch& fetch, std::byte* buffer) const;
  void take_whole(Fetch& fetch, const std::byte* buffer) const;
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
  ShardContents contents_;
  ShardIo io_;
  std::filesystem::path disk_;  // the step's folder on disk; empty if there is none
  bool throws_ = false;         // load() throws errors instead of trying another copy
  ShardCopies copies_;
  std::vector<InventoryEntry> served_;  // this node's folders, which its ranks serve to other nodes
  std::vector<int> host_ranks_;         // the world's ranks on this host, by rank of host_
  std::unique_ptr<Communicator> host_;  // the ranks of this host; null if it is not needed
  std::map<std::pair<std::string, std::int64_t>, OpenShard> files_;  // by folder and shard
  // Buffers of the threads of read_files(), kept since the system would zero pages of new ones.
  std::vector<PageBuffer> buffers_;
  std::string refusal_;
  LoadStats stats_;
};

}  // namespace trireme
