#include "src/plan/network/fabric.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 3> kFabricNames = {"fat_tree", "rail", "dragonfly"};
constexpr std::array<std::string_view, kLinkLevels> kLevelNames = {"link", "nic", "leaf", "pod",
                                                                   "global"};

enum Level : std::size_t { gpu_level, nic_level, leaf_level, pod_level };

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

std::string_view name_of(FabricKind kind) {
  return kFabricNames.at(static_cast<std::size_t>(kind));
}

std::vector<std::string> fabric_names() { return {kFabricNames.begin(), kFabricNames.end()}; }

FabricKind parse_fabric(std::string_view name) {
  const auto found = std::find(kFabricNames.begin(), kFabricNames.end(), name);
  check(found != kFabricNames.end(), "the name of a fabric was not checked");
  return static_cast<FabricKind>(found - kFabricNames.begin());
}

std::string_view name_of(LinkLevel level) {
  return kLevelNames.at(static_cast<std::size_t>(level));
}

void check_fabric(const Fabric& fabric) {
  const auto demand = [](bool holds, const std::string& what) {
    if (!holds) {
      throw ConfigError(what);
    }
  };
  constexpr std::int64_t kMostGpus = 1 << 20;
  const auto positive = [&](const char* name, double value) {
    demand(value > 0 && std::isfinite(value),
           fmt::format("{} of the fabric is {}, but it must be above 0", name, value));
  };
  positive("nodes", static_cast<double>(fabric.nodes));
  positive("gpus_per_node", static_cast<double>(fabric.gpus_per_node));
  positive("nics_per_node", static_cast<double>(fabric.nics_per_node));
  positive("nodes_per_leaf", static_cast<double>(fabric.nodes_per_leaf));
  positive("nodes_per_group", static_cast<double>(fabric.nodes_per_group));
  positive("link_rate", fabric.link_rate);
  positive("nic_rate", fabric.nic_rate);
  positive("leaf_taper", fabric.leaf_taper);
  positive("pod_taper", fabric.pod_taper);
  positive("global_taper", fabric.global_taper);
  positive("spread", fabric.spread);
  demand(fabric.spread <= 1,
         fmt::format("spread of the fabric is {}, but it is a part of 1", fabric.spread));
  demand(fabric.leaves_per_pod >= 0, "leaves_per_pod of the fabric is negative");
  for (const double latency : {fabric.link_latency, fabric.nic_latency, fabric.switch_latency}) {
    demand(latency >= 0 && std::isfinite(latency), "a latency of the fabric is negative");
  }
  demand(fabric.nodes <= kMostGpus && fabric.gpus_per_node <= kMostGpus / fabric.nodes,
         fmt::format("the fabric has more than {} GPUs", kMostGpus));
  demand(fabric.gpus_per_node % fabric.nics_per_node == 0 ||
             fabric.nics_per_node % fabric.gpus_per_node == 0,
         fmt::format("{} NICs can't be shared evenly by {} GPUs of a node", fabric.nics_per_node,
                     fabric.gpus_per_node));
}

Traffic::Traffic(const Fabric& fabric) : fabric_(fabric) {
  // NICs of one GPU act as one with the sum of their rates.
  const std::int64_t rails = std::min(fabric.nics_per_node, fabric.gpus_per_node);
  leaves_per_rail_ = ceiling(fabric.nodes, fabric.nodes_per_leaf);
  pods_per_rail_ = fabric.leaves_per_pod > 0 ? ceiling(leaves_per_rail_, fabric.leaves_per_pod) : 1;
  groups_ = ceiling(fabric.nodes, fabric.nodes_per_group);
  const auto size = [&](Level level, std::int64_t links) {
    out_[level].assign(static_cast<std::size_t>(links), 0);
    in_[level].assign(static_cast<std::size_t>(links), 0);
  };
  size(gpu_level, fabric.gpus());
  size(nic_level, fabric.nodes * rails);
  if (fabric.kind == FabricKind::dragonfly) {
    global_.assign(static_cast<std::size_t>(groups_ * groups_), 0);
  } else {
    const std::int64_t planes = fabric.kind == FabricKind::rail ? rails : 1;
    size(leaf_level, leaves_per_rail_ * planes);
    size(pod_level, pods_per_rail_ * planes);
  }
}

Traffic::Place Traffic::place_of(std::int64_t gpu) const {
  check(gpu >= 0 && gpu < fabric_.gpus(), "a transfer is between GPUs of the fabric");
  const std::int64_t rails = std::min(fabric_.nics_per_node, fabric_.gpus_per_node);
  Place place{};
  place.node = gpu / fabric_.gpus_per_node;
  place.rail = gpu % fabric_.gpus_per_node * rails / fabric_.gpus_per_node;
  const std::int64_t plane = fabric_.kind == FabricKind::rail ? place.rail : 0;
  const std::int64_t leaf = place.node / fabric_.nodes_per_leaf;
  place.leaf = plane * leaves_per_rail_ + leaf;
  place.pod =
      plane * pods_per_rail_ + (fabric_.leaves_per_pod > 0 ? leaf / fabric_.leaves_per_pod : 0);
  place.group = place.node / fabric_.nodes_per_group;
  return place;
}

void Traffic::add(std::int64_t from, std::int64_t to, double bytes) {
  const auto load = [&](Level level, std::int64_t source, std::int64_t target) {
    out_[level][static_cast<std::size_t>(source)] += bytes;
    in_[level][static_cast<std::size_t>(target)] += bytes;
  };
  Place a = place_of(from);
  const Place b = place_of(to);
  if (a.node == b.node) {
    if (from != to) {
      load(gpu_level, from, to);
    }
    return;
  }
  const std::int64_t rails = std::min(fabric_.nics_per_node, fabric_.gpus_per_node);
  if (fabric_.kind == FabricKind::rail && a.rail != b.rail) {
    const std::int64_t gpus_per_rail = fabric_.gpus_per_node / rails;
    const std::int64_t relay = a.node * fabric_.gpus_per_node + b.rail * gpus_per_rail;
    load(gpu_level, from, relay);
    a = place_of(relay);
  }
  load(nic_level, a.node * rails + a.rail, b.node * rails + b.rail);
  if (fabric_.kind == FabricKind::dragonfly) {
    if (a.group != b.group) {
      global_[static_cast<std::size_t>(a.group * groups_ + b.group)] += bytes;
    }
    return;
  }
  if (a.leaf != b.leaf) {
    load(leaf_level, a.leaf, b.leaf);
  }
  if (a.pod != b.pod && fabric_.leaves_per_pod > 0) {
    load(pod_level, a.pod, b.pod);
  }
}

// The links between two groups carry what goes directly, and a part that adaptive routing sends by
// a third group (Valiant). That part loads two links, but spreads over all of them.
double Traffic::global_seconds() const {
  if (groups_ < 2) {
    return 0;
  }
  const double total = std::accumulate(global_.begin(), global_.end(), 0.0);
  const auto others = static_cast<double>(groups_ - 1);
  const double group_rate = static_cast<double>(fabric_.nodes_per_group * fabric_.nics_per_node) *
                            fabric_.nic_rate * fabric_.global_taper * fabric_.spread;
  const double pair_rate = group_rate / others;
  const double direct = most(global_) / pair_rate;
  if (groups_ == 2) {
    return direct;
  }
  const double indirect = 2 * total / (static_cast<double>(groups_) * others) / pair_rate;
  // With the part f by a third group, the most loaded link takes (1 - f) direct + f indirect.
  return std::min(direct, indirect);
}

double Traffic::seconds(LinkLevel level) const {
  const double nics_per_rail = std::max(
      1.0, static_cast<double>(fabric_.nics_per_node) / static_cast<double>(fabric_.gpus_per_node));
  const double nic = fabric_.nic_rate * nics_per_rail;
  const auto busiest = [&](Level links) { return std::max(most(out_[links]), most(in_[links])); };
  const std::int64_t rails = std::min(fabric_.nics_per_node, fabric_.gpus_per_node);
  const double nics_per_node = fabric_.kind == FabricKind::rail ? 1 : static_cast<double>(rails);
  const double leaf = static_cast<double>(std::min(fabric_.nodes_per_leaf, fabric_.nodes)) *
                      nics_per_node * nic * fabric_.leaf_taper * fabric_.spread;
  switch (level) {
    case LinkLevel::link:
      return busiest(gpu_level) / fabric_.link_rate;
    case LinkLevel::nic:
      return busiest(nic_level) / nic;
    case LinkLevel::leaf:
      return busiest(leaf_level) / leaf;
    case LinkLevel::pod:
      return busiest(pod_level) /
             (leaf * static_cast<double>(std::max<std::int64_t>(1, fabric_.leaves_per_pod)) *
              fabric_.pod_taper);
    case LinkLevel::global:
      return global_.empty() ? 0 : global_seconds();
  }
  return 0;
}

double Traffic::seconds() const { return seconds(bottleneck()); }

LinkLevel Traffic::bottleneck() const {
  LinkLevel worst = LinkLevel::link;
  for (std::size_t i = 1; i < kLinkLevels; ++i) {
    const auto level = static_cast<LinkLevel>(i);
    worst = seconds(level) > seconds(worst) ? level : worst;
  }
  return worst;
}

double Traffic::latency(std::int64_t from, std::int64_t to) const {
  const Place a = place_of(from);
  const Place b = place_of(to);
  if (a.node == b.node) {
    return from == to ? 0 : fabric_.link_latency;
  }
  double switches = 1;
  if (fabric_.kind == FabricKind::dragonfly) {
    switches = a.group == b.group ? 2 : 4;
  } else if (a.leaf % leaves_per_rail_ != b.leaf % leaves_per_rail_) {
    const bool same_pod = a.pod % pods_per_rail_ == b.pod % pods_per_rail_;
    switches = same_pod ? 3 : 5;
  }
  return fabric_.nic_latency + switches * fabric_.switch_latency;
}

}  // namespace trireme
