// Predicts how long collective operations take on a fabric, alone or several at once, by the
// transfers of their algorithm. Pure functions.
//
//   ring          chunks travel around all ranks, node by node; every GPU of a node starts a ring
//   of
//                 its own, so that all NICs work (NCCL)             2 S (n-1)/n     out of a rank
//   tree          two binary trees over the nodes, a chain within   2 S (2 nodes: S) out of a node
//                 each node (NCCL)
//   hierarchical  reduce-scatter within each node, recursive halving
//                 and doubling between nodes by each GPU for its own
//                 part, all-gather within each node (docs/communication.md)
//                                                                   2 S (m-1)/m     out of a node
//
// S: bytes of the whole buffer; n: ranks; m: nodes. A reduce-scatter or an all-gather is one half
// of an all-reduce; NCCL has no trees for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/plan/network/fabric.h"

namespace trireme {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all };
std::vector<std::string> planned_collective_names();
// name: one of planned_collective_names().
CollectiveKind parse_planned_collective(std::string_view name);

enum class CollectiveAlgorithm : std::uint8_t { ring, tree, hierarchical, pairwise };
std::string_view name_of(CollectiveAlgorithm algorithm);

// The GPUs of one group, in the order of its ranks. Those of a node follow each other, and all its
// nodes have the same number of them.
using GpuGroup = std::vector<std::int64_t>;

struct CollectiveTime {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  double seconds = 0;
  double latency = 0;                      // the part that does not depend on the size
  LinkLevel bottleneck = LinkLevel::link;  // what the rest waits for
};

// Returns the time of an operation that all groups run at once, each on `bytes`; nullopt if the
// algorithm does not suit the operation or the number of nodes. groups: at least one, all of the
// same size; of one rank each take no time.
std::optional<CollectiveTime> collective_time(const Fabric& fabric,
                                              const std::vector<GpuGroup>& groups,
                                              CollectiveKind kind, CollectiveAlgorithm algorithm,
                                              double bytes);

// Returns the time of the fastest of these algorithms.
CollectiveTime fastest_collective(const Fabric& fabric, const std::vector<GpuGroup>& groups,
                                  CollectiveKind kind, double bytes,
                                  const std::vector<CollectiveAlgorithm>& algorithms);

// Returns the rate that NCCL's tests call bus bandwidth, in bytes per second: 2 (n-1)/n S / t of an
// all-reduce, (n-1)/n S / t of the others.
double bus_rate(CollectiveKind kind, std::int64_t ranks, double bytes, double seconds);

// Returns the groups of consecutive GPUs, or, with a stride, of every `stride`-th GPU, as layouts
// have them: ranks along dp are tp apart.
std::vector<GpuGroup> gpu_groups(const Fabric& fabric, std::int64_t gpus, std::int64_t group,
                                 std::int64_t stride);
// Returns the groups with their nodes replaced by others in a random order, like those of a job on
// a busy machine.
std::vector<GpuGroup> scattered(const Fabric& fabric, std::vector<GpuGroup> groups,
                                std::uint64_t seed);

}  // namespace trireme
