#include "src/plan/network/collective_traffic.h"

#include <algorithm>

#include "src/base/check.h"

namespace trireme {
namespace {

// Spreads a transfer between two nodes over their GPUs.
void add_between(Traffic& traffic, const NodeGroup& group, std::int64_t from, std::int64_t to,
                 double bytes) {
  for (std::int64_t i = 0; i < group.per_node(); ++i) {
    traffic.add(group.gpu(from, i), group.gpu(to, i),
                bytes / static_cast<double>(group.per_node()));
  }
}

// Each GPU of a node sends `bytes` to the next one of its node.
void add_around_nodes(Traffic& traffic, const NodeGroup& group, double bytes) {
  const std::int64_t k = group.per_node();
  for (std::int64_t node = 0; node < group.nodes() && k > 1; ++node) {
    for (std::int64_t i = 0; i < k; ++i) {
      traffic.add(group.gpu(node, i), group.gpu(node, (i + 1) % k), bytes);
    }
  }
}

// Returns the parent of a node in a binary tree in which the numbers of the nodes are in order, as
// in NCCL's double binary trees (Sanders, Speck, Traeff: "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35(12), 2009); -1 for the root, node 0.
std::int64_t parent_of(std::int64_t node, std::int64_t nodes) {
  if (node == 0) {
    return -1;
  }
  std::int64_t bit = 1;
  while ((node & bit) == 0) {
    bit <<= 1;
  }
  const std::int64_t up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

}  // namespace

NodeGroup::NodeGroup(const Fabric& fabric, const std::vector<std::int64_t>& gpus) : gpus_(gpus) {
  const auto node_of = [&](std::size_t i) { return gpus_[i] / fabric.gpus_per_node; };
  std::size_t count = 1;
  while (count < gpus_.size() && node_of(count) == node_of(0)) {
    ++count;
  }
  per_node_ = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    check(gpus_.size() % count == 0 && node_of(i) == node_of(i / count * count),
          "all nodes of a group have the same number of its GPUs");
  }
}

void add_ring(Traffic& traffic, const NodeGroup& group, double bytes) {
  const auto n = static_cast<double>(group.ranks());
  const auto k = static_cast<double>(group.per_node());
  const double each = bytes * (n - 1) / n;
  // Of the k rings, each leaves the node behind another GPU; the others pass it on within the node.
  add_around_nodes(traffic, group, group.nodes() > 1 ? each * (k - 1) / k : each);
  for (std::int64_t node = 0; node < group.nodes() && group.nodes() > 1; ++node) {
    add_between(traffic, group, node, (node + 1) % group.nodes(), each);
  }
}

double ring_latency(const Traffic& traffic, const NodeGroup& group) {
  double latency = 0;
  for (std::int64_t node = 0; node < group.nodes(); ++node) {
    if (group.per_node() > 1) {
      latency += static_cast<double>(group.per_node() - 1) *
                 traffic.latency(group.gpu(node, 0), group.gpu(node, 1));
    }
    if (node + 1 < group.nodes()) {
      latency += traffic.latency(group.gpu(node, 0), group.gpu(node + 1, 0));
    }
  }
  return latency;
}

double add_tree(Traffic& traffic, const NodeGroup& group, double bytes) {
  const std::int64_t m = group.nodes();
  const auto k = static_cast<double>(group.per_node());
  // The chain within a node carries everything up and everything down.
  add_around_nodes(traffic, group, 2 * bytes * (k - 1) / k);
  double within = 0;
  if (group.per_node() > 1) {
    within = (k - 1) * traffic.latency(group.gpu(0, 0), group.gpu(0, 1));
  }
  double deepest = 0;
  for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{1}}) {
    // The second tree is the first one with all nodes shifted by one.
    const auto place = [&](std::int64_t node) { return (node + shift) % m; };
    for (std::int64_t node = 1; node < m; ++node) {
      const std::int64_t parent = parent_of(node, m);
      add_between(traffic, group, place(node), place(parent), bytes / 2);
      add_between(traffic, group, place(parent), place(node), bytes / 2);
      double depth = 0;
      for (std::int64_t at = node; at != 0; at = parent_of(at, m)) {
        depth += traffic.latency(group.gpu(place(at), 0), group.gpu(place(parent_of(at, m)), 0));
      }
      deepest = std::max(deepest, depth);
    }
  }
  return 2 * (within + deepest);
}

void add_within_nodes(Traffic& traffic, const NodeGroup& group, double bytes) {
  const auto k = static_cast<double>(group.per_node());
  add_around_nodes(traffic, group, bytes * (k - 1) / k);
}

double add_exchange(Traffic& traffic, const NodeGroup& group, std::int64_t distance, double bytes) {
  double latency = 0;
  for (std::int64_t node = 0; node < group.nodes(); ++node) {
    const std::int64_t other = node ^ distance;
    for (std::int64_t i = 0; i < group.per_node(); ++i) {
      traffic.add(group.gpu(node, i), group.gpu(other, i), bytes);
    }
    latency = std::max(latency, traffic.latency(group.gpu(node, 0), group.gpu(other, 0)));
  }
  return latency;
}

double add_pairs(Traffic& traffic, const NodeGroup& group, double bytes) {
  const double each = bytes / static_cast<double>(group.ranks());
  const std::int64_t k = group.per_node();
  double latency = 0;
  // Within a node, a GPU sends each other GPU the data for that GPU itself. If transfers stay on
  // their rail, it also sends the data for that GPU's counterparts in other nodes.
  const double to_relay =
      traffic.keeps_to_rails() ? each * static_cast<double>(group.nodes()) : each;
  for (std::int64_t from = 0; from < group.nodes(); ++from) {
    for (std::int64_t to = 0; to < group.nodes(); ++to) {
      for (std::int64_t i = 0; i < k; ++i) {
        if (from == to) {
          for (std::int64_t j = 0; j < k; ++j) {
            traffic.add(group.gpu(from, i), group.gpu(to, j), to_relay);
          }
        } else {
          // The k transfers to the GPUs of a node use all its rails alike.
          traffic.add(group.gpu(from, i), group.gpu(to, i), each * static_cast<double>(k));
        }
      }
      latency = std::max(latency, traffic.latency(group.gpu(from, 0), group.gpu(to, 0)));
    }
  }
  return latency;
}

}  // namespace trireme
