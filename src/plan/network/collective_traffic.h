// The transfers of collective algorithms, added to the traffic of a fabric. Pure functions but for
// that. Each returns or adds nothing for groups of one node where it is about transfers between
// nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/network/fabric.h"

namespace trireme {

// A group by its nodes: every node has the same number of GPUs in it.
class NodeGroup {
 public:
  // gpus: in the order of ranks, those of a node one after the other.
  NodeGroup(const Fabric& fabric, const std::vector<std::int64_t>& gpus);

  std::int64_t nodes() const { return static_cast<std::int64_t>(gpus_.size()) / per_node_; }
  std::int64_t per_node() const { return per_node_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(gpus_.size()); }
  std::int64_t gpu(std::int64_t node, std::int64_t index) const {
    return gpus_[static_cast<std::size_t>(node * per_node_ + index)];
  }

 private:
  std::vector<std::int64_t> gpus_;
  std::int64_t per_node_ = 1;
};

// One pass around the ring: every rank sends bytes (n-1)/n. A node enters the next one through all
// its GPUs, each with a part.
void add_ring(Traffic& traffic, const NodeGroup& group, double bytes);
// Returns the latency of one pass: that of every hop but one.
double ring_latency(const Traffic& traffic, const NodeGroup& group);
// Reduce and broadcast along two trees, each with one half. Returns the latency.
double add_tree(Traffic& traffic, const NodeGroup& group, double bytes);
// A reduce-scatter or an all-gather within each node: every GPU sends bytes (k-1)/k.
void add_within_nodes(Traffic& traffic, const NodeGroup& group, double bytes);
// Every GPU sends `bytes` to its counterpart `distance` nodes away (exclusive or). Returns the
// latency.
double add_exchange(Traffic& traffic, const NodeGroup& group, std::int64_t distance, double bytes);
// Every rank sends bytes / n to every other. Returns the latency.
double add_pairs(Traffic& traffic, const NodeGroup& group, double bytes);

}  // namespace trireme
