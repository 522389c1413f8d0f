// NearestLoader: the blocks that the ranks ask for, out of all copies of one step, each from the
// nearest that is good: the own node's memory, a partner's copy on this node, other nodes' memory,
// copies on other nodes, the disk. Every digest is compared where the bytes are to be used; a
// piece that is damaged, or gone, is fetched again from the next copy. What several ranks of a host
// want from the disk is read once (host_reading.h). Used by resume(), on the thread that owns the
// communicator.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/memory/exchange.h"
#include "io/checkpoint/memory/host_reading.h"
#include "io/checkpoint/memory/inventory.h"
#include "io/checkpoint/reader.h"

namespace trireme {

enum class CopyKind : std::uint8_t { own, partner, other_own, other_partner, disk };
inline constexpr std::size_t kCopyKinds = 5;
// "this node's memory", ...
std::string_view copy_kind_text(CopyKind kind);

// Where a rank can take a shard from.
struct ShardCopy {
  CopyKind kind = CopyKind::disk;
  std::filesystem::path folder;  // on its node
  int rank = 0;                  // of other nodes: who serves it
  std::int64_t entry = 0;        // of other nodes: which of its node's folders
};

struct NearestStats {
  LoadStats load;                                   // this rank's
  std::array<std::int64_t, kCopyKinds> bytes = {};  // by kind, this rank's
  std::vector<std::string> repairs;                 // what was damaged, on this rank's way; a few
};

class NearestLoader {
 public:
  // All of them outlive the loader.
  NearestLoader(Communicator& comm, const NodeMap& nodes, const Inventory& inventory,
                const StepCandidate& step, const Manifest& manifest, const ShardIo& io);

  // "" or which shards no copy has; the same on all ranks.
  std::string missing() const;
  // Collective. "" or what keeps any rank from having its blocks: the step is of no use, and the
  // blocks hold undefined bytes. PolicyError on all ranks if one may not read a copy.
  std::string load(std::span<const TensorBlock> blocks);
  const NearestStats& stats() const { return stats_; }

 private:
  // A piece on its way.
  struct Fetch {
    Piece piece;
    std::size_t copy = 0;  // which of the shard's copies is to be tried
    bool done = false;
    std::string fault;  // of the latest try
  };

  const ShardCopy* next_copy(const Fetch& fetch) const;
  void join_host();
  void find_copies();
  void add_copies(const StepPlace& place, bool is_near);
  void read_near(std::vector<Fetch>& fetches);
  void read_far(std::vector<Fetch>& fetches);
  void read_disk(std::vector<Fetch>& fetches);
  void read_shared(const HostPlan& plan, const std::vector<Fetch*>& due);
  std::string read_turn(const ReadingTurn& turn, std::byte* buffer) const;
  void take_shared(Fetch& fetch, int reader, const std::byte* buffer);
  void read_files(const std::vector<Fetch*>& due);
  const ShardReader* open_shard(const std::filesystem::path& folder, std::int64_t shard);
  void try_near(Fetch& fetch, const ShardReader* reader, std::byte* buffer) const;
  void take(Fetch& fetch, std::byte* buffer) const;
  void serve(const PieceRequest& request, std::byte* buffer) const;
  std::string transit_fault(const Piece& piece, std::int64_t block, const std::byte* at, int sender,
                            const ShardCopy& copy) const;
  void note(const std::vector<Fetch*>& tried);
  void note_fault(Fetch& fetch);

  Communicator& comm_;
  const NodeMap& nodes_;
  const Inventory& inventory_;
  const StepCandidate& step_;
  const Manifest& manifest_;
  ShardIo io_;
  std::vector<int> host_ranks_;                 // of this host
  std::unique_ptr<Communicator> host_;          // of them; null where that is one
  std::vector<std::vector<ShardCopy>> copies_;  // by shard, the nearest first
  // Of files that this rank reads; nothing of those that can't be opened.
  std::map<std::pair<std::string, std::int64_t>, std::optional<ShardReader>> readers_;
  std::map<std::pair<std::string, std::int64_t>, std::string> faults_;  // why not
  std::string refusal_;
  NearestStats stats_;
};

}  // namespace trireme
