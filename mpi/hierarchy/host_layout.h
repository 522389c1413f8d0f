// HostLayout describes how the ranks of a group are placed on hosts, from the view of one of them.
// A plain value and a pure function.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct HostLayout {
  std::vector<int> local;  // the ranks of this rank's host, in group order
  int local_rank = 0;      // index of this rank in `local`
  // Whether every host has the same number of ranks, which have consecutive numbers, so that
  // operations may work inside hosts first.
  bool is_regular = false;
  // Whether such sums keep the tree order (communicator.h): if the number of hosts is a power of
  // two, the ranks of each host lie below one node of the canonical tree.
  bool keeps_tree_order = false;
  std::vector<int> across;  // if regular: the ranks with this local_rank, one per host, in order

  int per_host() const { return static_cast<int>(local.size()); }
  int hosts() const { return static_cast<int>(across.size()); }
};

// hosts[r] is the host of rank r of the group.
HostLayout layout_of(const std::vector<std::string>& hosts, int rank);

}  // namespace trireme
