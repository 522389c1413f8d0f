// HostLayout: how the ranks of a group lie on hosts, as seen by one of them. Pure function.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct HostLayout {
  std::vector<int> local;  // the ranks of this rank's host, in group order
  int local_rank = 0;      // this rank's place among them
  // Every host has the same number of ranks and they stand next to each other: sums may stay inside
  // hosts first. The canonical tree (communicator.h) then has a host's ranks below one node if the
  // number of hosts is a power of two.
  bool is_regular = false;
  bool keeps_tree_order = false;
  std::vector<int> across;  // if regular: the ranks with this local_rank, one a host, in host order

  int per_host() const { return static_cast<int>(local.size()); }
  int hosts() const { return static_cast<int>(across.size()); }
};

// hosts[r]: of rank r of the group.
HostLayout layout_of(const std::vector<std::string>& hosts, int rank);

}  // namespace trireme
