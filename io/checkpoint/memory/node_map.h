// NodeMap says which ranks share a node's memory. A plain value, the same on all ranks.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/communicator.h"

namespace trireme {

struct NodeMap {
  std::vector<int> node_of;             // by rank; -1 if the rank has no node folder
  std::vector<std::vector<int>> ranks;  // by node, in ascending order
  std::vector<std::string> names;       // by node
  bool any() const { return !ranks.empty(); }
  bool all() const;  // whether every rank has a node folder
  // Returns whether the rank is the leader of its node, which acts for all its ranks.
  bool leads(int rank) const;
};

// Collective. Ranks of one host that have the same node folder share a node.
NodeMap map_nodes(Communicator& comm, const NodeMemory& own);

}  // namespace trireme
