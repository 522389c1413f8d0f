// Finds where the shards of a step can be read, the nearest copy first: this node's memory, a
// partner's copy on this node, other nodes' memory, partner copies on other nodes, the disk. Pure
// functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/load/inventory.h"

namespace trireme {

enum class CopyKind : std::uint8_t { own, partner, other_own, other_partner, disk };
inline constexpr std::size_t kCopyKinds = 5;
// Returns "this node's memory" and the like.
std::string_view copy_kind_text(CopyKind kind);

struct ShardCopy {
  CopyKind kind = CopyKind::disk;
  std::filesystem::path folder;  // on its node
  int rank = 0;                  // for other nodes: the rank that serves it
  std::int64_t entry = 0;        // for other nodes: the index of the folder in the node's inventory

  bool is_near() const { return kind == CopyKind::own || kind == CopyKind::partner; }
  bool is_disk() const { return kind == CopyKind::disk; }
  bool is_far() const { return kind == CopyKind::other_own || kind == CopyKind::other_partner; }
};

// Indexed by shard; the copies are sorted by distance from this rank.
using ShardCopies = std::vector<std::vector<ShardCopy>>;
ShardCopies find_copies(const StepCandidate& step, const Manifest& manifest, const NodeMap& nodes,
                        const std::vector<NodeInventory>& inventories, int rank);
// Returns which shards have no copy, or "". The same on all ranks.
std::string missing_shards(const ShardCopies& copies, const Manifest& manifest);

}  // namespace trireme
