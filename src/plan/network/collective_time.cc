#include "src/plan/network/collective_time.h"

#include <algorithm>
#include <numeric>

#include "src/base/check.h"
#include "src/base/philox.h"
#include "src/plan/network/collective_traffic.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 4> kCollectiveNames = {"all_reduce", "reduce_scatter",
                                                              "all_gather", "all_to_all"};
constexpr std::array<std::string_view, 4> kAlgorithmNames = {"ring", "tree", "hierarchical",
                                                             "pairwise"};

// Phases follow each other; the transfers of one phase run at once.
class PhaseClock {
 public:
  void add(const Traffic& traffic, double latency) {
    const double seconds = traffic.seconds();
    total_ += seconds + latency;
    latency_ += latency;
    if (seconds > longest_) {
      longest_ = seconds;
      bottleneck_ = traffic.bottleneck();
    }
  }
  CollectiveTime time(CollectiveAlgorithm algorithm) const {
    return {algorithm, total_, latency_, bottleneck_};
  }

 private:
  double total_ = 0, latency_ = 0, longest_ = 0;
  LinkLevel bottleneck_ = LinkLevel::link;
};

CollectiveTime ring_time(const Fabric& fabric, const std::vector<NodeGroup>& groups, double passes,
                         double bytes) {
  Traffic traffic(fabric);
  double latency = 0;
  for (const NodeGroup& group : groups) {
    add_ring(traffic, group, passes * bytes);
    latency = std::max(latency, passes * ring_latency(traffic, group));
  }
  PhaseClock clock;
  clock.add(traffic, latency);
  return clock.time(CollectiveAlgorithm::ring);
}

CollectiveTime tree_time(const Fabric& fabric, const std::vector<NodeGroup>& groups, double bytes) {
  Traffic traffic(fabric);
  double latency = 0;
  for (const NodeGroup& group : groups) {
    latency = std::max(latency, add_tree(traffic, group, bytes));
  }
  PhaseClock clock;
  clock.add(traffic, latency);
  return clock.time(CollectiveAlgorithm::tree);
}

CollectiveTime hierarchical_time(const Fabric& fabric, const std::vector<NodeGroup>& groups,
                                 double passes, double bytes) {
  PhaseClock clock;
  const std::int64_t per_node = groups.front().per_node();
  const std::int64_t nodes = groups.front().nodes();
  if (per_node > 1) {
    Traffic within(fabric);
    for (const NodeGroup& group : groups) {
      add_within_nodes(within, group, passes * bytes);
    }
    clock.add(within, passes * static_cast<double>(per_node - 1) * fabric.link_latency);
  }
  double part = bytes / static_cast<double>(per_node);
  for (std::int64_t distance = nodes / 2; distance > 0; distance /= 2) {
    part /= 2;
    Traffic step(fabric);
    double latency = 0;
    for (const NodeGroup& group : groups) {
      latency = std::max(latency, add_exchange(step, group, distance, part));
    }
    // Doubling repeats the transfers of halving.
    for (int pass = 0; pass < static_cast<int>(passes); ++pass) {
      clock.add(step, latency);
    }
  }
  return clock.time(CollectiveAlgorithm::hierarchical);
}

CollectiveTime pairwise_time(const Fabric& fabric, const std::vector<NodeGroup>& groups,
                             double bytes) {
  Traffic traffic(fabric);
  double latency = 0;
  for (const NodeGroup& group : groups) {
    latency = std::max(latency, add_pairs(traffic, group, bytes));
  }
  PhaseClock clock;
  clock.add(traffic, latency);
  return clock.time(CollectiveAlgorithm::pairwise);
}

}  // namespace

std::vector<std::string> planned_collective_names() {
  return {kCollectiveNames.begin(), kCollectiveNames.end()};
}

CollectiveKind parse_planned_collective(std::string_view name) {
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), name);
  check(found != kCollectiveNames.end(), "the name of a collective was not checked");
  return static_cast<CollectiveKind>(found - kCollectiveNames.begin());
}

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}

std::optional<CollectiveTime> collective_time(const Fabric& fabric,
                                              const std::vector<GpuGroup>& groups,
                                              CollectiveKind kind, CollectiveAlgorithm algorithm,
                                              double bytes) {
  check(!groups.empty(), "a collective has a group");
  std::vector<NodeGroup> by_node;
  for (const GpuGroup& group : groups) {
    by_node.emplace_back(fabric, group);
  }
  if (groups.front().size() == 1) {
    return CollectiveTime{algorithm, 0, 0, LinkLevel::link};
  }
  const bool is_reduction = kind != CollectiveKind::all_to_all;
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const std::int64_t nodes = by_node.front().nodes();
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return is_reduction ? std::optional(ring_time(fabric, by_node, passes, bytes)) : std::nullopt;
    case CollectiveAlgorithm::tree:
      return kind == CollectiveKind::all_reduce && nodes > 1
                 ? std::optional(tree_time(fabric, by_node, bytes))
                 : std::nullopt;
    case CollectiveAlgorithm::hierarchical:
      return is_reduction && (nodes & (nodes - 1)) == 0
                 ? std::optional(hierarchical_time(fabric, by_node, passes, bytes))
                 : std::nullopt;
    case CollectiveAlgorithm::pairwise:
      return is_reduction ? std::nullopt : std::optional(pairwise_time(fabric, by_node, bytes));
  }
  return std::nullopt;
}

CollectiveTime fastest_collective(const Fabric& fabric, const std::vector<GpuGroup>& groups,
                                  CollectiveKind kind, double bytes,
                                  const std::vector<CollectiveAlgorithm>& algorithms) {
  std::optional<CollectiveTime> best;
  for (const CollectiveAlgorithm algorithm : algorithms) {
    const auto time = collective_time(fabric, groups, kind, algorithm, bytes);
    if (time && (!best || time->seconds < best->seconds)) {
      best = time;
    }
  }
  check(best.has_value(), "one of the algorithms suits the collective");
  return *best;
}

double bus_rate(CollectiveKind kind, std::int64_t ranks, double bytes, double seconds) {
  const auto n = static_cast<double>(ranks);
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  return seconds > 0 ? passes * (n - 1) / n * bytes / seconds : 0;
}

std::vector<GpuGroup> gpu_groups(const Fabric& fabric, std::int64_t gpus, std::int64_t group,
                                 std::int64_t stride) {
  check(gpus <= fabric.gpus() && gpus % (group * stride) == 0, "groups divide the GPUs evenly");
  std::vector<GpuGroup> groups;
  for (std::int64_t block = 0; block < gpus; block += group * stride) {
    for (std::int64_t first = block; first < block + stride; ++first) {
      GpuGroup members;
      for (std::int64_t rank = 0; rank < group; ++rank) {
        members.push_back(first + rank * stride);
      }
      groups.push_back(std::move(members));
    }
  }
  return groups;
}

std::vector<GpuGroup> scattered(const Fabric& fabric, std::vector<GpuGroup> groups,
                                std::uint64_t seed) {
  std::vector<std::int64_t> node(static_cast<std::size_t>(fabric.nodes));
  std::iota(node.begin(), node.end(), 0);
  for (std::size_t i = node.size() - 1; i > 0; --i) {  // Fisher and Yates
    const PhiloxCounter random = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, philox_key(seed));
    const std::uint64_t bits = std::uint64_t{random[0]} << 32 | random[1];
    std::swap(node[i], node[bits % (i + 1)]);
  }
  for (GpuGroup& group : groups) {
    for (std::int64_t& gpu : group) {
      gpu = node[static_cast<std::size_t>(gpu / fabric.gpus_per_node)] * fabric.gpus_per_node +
            gpu % fabric.gpus_per_node;
    }
  }
  return groups;
}

}  // namespace trireme
