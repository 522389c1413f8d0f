// Fabric describes how the nodes of a cluster are connected, and Traffic adds up what a set of
// transfers puts on each of its links. The most loaded link decides how long they take: a model of
// flows that share links fairly, without packets or their loss. Plain values and pure functions.
//
//   fat_tree    nodes - leaf switch - (pod switches) - core           all NICs of a node on one
//   leaf rail        NIC i of each node - leaf i - (pod i) - core          transfers keep to their
//   rail dragonfly   nodes - group of switches == a link to every group    directly, or by a third
//   group
//
// A rail is the NIC of the same number in every node. In a rail-optimized fabric, a transfer to a
// GPU of another rail first moves to that rail within its node (PXN of NCCL).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class FabricKind : std::uint8_t { fat_tree, rail, dragonfly };
std::string_view name_of(FabricKind kind);
std::vector<std::string> fabric_names();
// name: one of fabric_names().
FabricKind parse_fabric(std::string_view name);

// Rates are those of one direction, in bytes per second; latencies are in seconds.
struct Fabric {
  FabricKind kind = FabricKind::rail;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  std::int64_t nics_per_node = 8;  // divides the GPUs or is a multiple of them
  double link_rate = 370e9;        // of a GPU within its node
  double link_latency = 1e-6;      // of a message within a node
  double nic_rate = 48e9;
  double nic_latency = 4e-6;       // of a message between nodes, without switches
  double switch_latency = 0.5e-6;  // of one switch
  std::int64_t nodes_per_leaf = 32;
  std::int64_t leaves_per_pod = 0;     // of a rail; 0: the leaves are connected by the core alone
  std::int64_t nodes_per_group = 256;  // dragonfly
  // Rate of the links upwards divided by that of the links downwards: 1 without oversubscription.
  double leaf_taper = 1, pod_taper = 1;
  double global_taper = 1;  // dragonfly: a group's links to others divided by its nodes' NICs
  // The part of the rate of parallel links that routing reaches: 1 with adaptive routing, less if
  // flows are hashed onto links.
  double spread = 1;

  std::int64_t gpus() const { return nodes * gpus_per_node; }
};

// Throws ConfigError if a number is not positive or the numbers do not fit each other.
void check_fabric(const Fabric& fabric);

enum class LinkLevel : std::uint8_t { link, nic, leaf, pod, global };
inline constexpr std::size_t kLinkLevels = 5;
std::string_view name_of(LinkLevel level);

class Traffic {
 public:
  // The fabric must outlive it.
  explicit Traffic(const Fabric& fabric);

  // Adds a transfer between GPUs, numbered node by node. Throws if a GPU does not exist.
  void add(std::int64_t from, std::int64_t to, double bytes);

  // Returns how long the most loaded link of a level, or of all, is busy.
  double seconds(LinkLevel level) const;
  double seconds() const;
  // Returns the level of the most loaded link.
  LinkLevel bottleneck() const;

  bool keeps_to_rails() const { return fabric_.kind == FabricKind::rail; }
  // Returns the time that a message of no length takes.
  double latency(std::int64_t from, std::int64_t to) const;

 private:
  struct Place {
    std::int64_t node, rail, leaf, pod, group;
  };
  Place place_of(std::int64_t gpu) const;
  double global_seconds() const;

  const Fabric& fabric_;
  std::int64_t leaves_per_rail_, pods_per_rail_, groups_;
  // Bytes on the links, out and in: of GPUs, NICs, leaf switches and pods.
  std::array<std::vector<double>, 4> out_, in_;
  std::vector<double> global_;  // [groups, groups] bytes from one group to another
};

}  // namespace trireme
