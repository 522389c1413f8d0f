#include "io/checkpoint/load/shard_copies.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

// Adds the copies in one folder of a node.
void add_copies(const InventoryEntry& entry, const StepPlace& place, const std::vector<int>& ranks,
                bool is_near, ShardCopies& copies) {
  const CopyKind near = entry.is_partner ? CopyKind::partner : CopyKind::own;
  const CopyKind far = entry.is_partner ? CopyKind::other_partner : CopyKind::other_own;
  for (const std::int64_t shard : entry.shards) {
    const auto index = static_cast<std::size_t>(shard);
    check(index < copies.size(), "an inventory's shard is in the manifest");
    // Distribute the serving over the node's ranks.
    copies[index].push_back({is_near ? near : far, entry.path, ranks[index % ranks.size()],
                             static_cast<std::int64_t>(place.entry)});
  }
}

}  // namespace

std::string_view copy_kind_text(CopyKind kind) {
  constexpr std::array<std::string_view, kCopyKinds> kTexts = {
      "this node's memory", "a partner's copy on this node", "other nodes' memory",
      "copies on other nodes", "disk"};
  return kTexts[static_cast<std::size_t>(kind)];
}

ShardCopies find_copies(const StepCandidate& step, const Manifest& manifest, const NodeMap& nodes,
                        const std::vector<NodeInventory>& inventories, int rank) {
  ShardCopies copies(manifest.shards.size());
  const int own = nodes.node_of.empty() ? -1 : nodes.node_of[static_cast<std::size_t>(rank)];
  const auto count = static_cast<int>(nodes.ranks.size());
  for (int distance = 0; distance < count; ++distance) {
    const int node = (std::max(own, 0) + distance) % count;
    for (const StepPlace& place : step.places) {
      if (place.node == static_cast<std::size_t>(node)) {
        add_copies(inventories[place.node].entries[place.entry], place, nodes.ranks[place.node],
                   node == own, copies);
      }
    }
  }
  for (std::vector<ShardCopy>& of_shard : copies) {
    if (!step.disk.empty()) {
      of_shard.push_back({CopyKind::disk, step.disk, 0, 0});
    }
    std::stable_sort(of_shard.begin(), of_shard.end(),
                     [](const ShardCopy& a, const ShardCopy& b) { return a.kind < b.kind; });
  }
  return copies;
}

std::string missing_shards(const ShardCopies& copies, const Manifest& manifest) {
  std::vector<std::string> names;
  for (std::size_t shard = 0; shard < copies.size(); ++shard) {
    if (copies[shard].empty()) {
      names.push_back(manifest.shards[shard].file);
    }
  }
  if (names.empty()) {
    return "";
  }
  return fmt::format(
      "{} of {} shards can be found neither in the memory of a node nor on disk: {}{}",
      names.size(), copies.size(), names.front(), names.size() > 1 ? ", ..." : "");
}

}  // namespace trireme
