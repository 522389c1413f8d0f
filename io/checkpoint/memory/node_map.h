// NodeMap: which ranks share a node's memory. A plain value, the same on all ranks.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/communicator.h"

namespace trireme {

struct NodeMap {
  std::vector<int> node_of;             // by rank; -1: the rank has no node folder
  std::vector<std::vector<int>> ranks;  // by node, ascending
  std::vector<std::string> names;       // by node
  bool any() const { return !ranks.empty(); }
  bool all() const;  // every rank has one
  // The rank that speaks and acts for its node.
  bool leads(int rank) const;
};

// Collective. Ranks of one host that were given one folder share a node.
NodeMap map_nodes(Communicator& comm, const NodeMemory& own);

}  // namespace trireme
