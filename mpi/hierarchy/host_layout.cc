#include "mpi/hierarchy/host_layout.h"

#include <algorithm>
#include <bit>

#include "src/base/check.h"

namespace trireme {
namespace {

bool is_regular(const std::vector<std::string>& hosts, std::size_t per_host) {
  if (hosts.size() % per_host != 0) {
    return false;
  }
  std::vector<std::string> seen;
  for (std::size_t first = 0; first < hosts.size(); first += per_host) {
    const std::string& host = hosts[first];
    if (std::find(seen.begin(), seen.end(), host) != seen.end()) {
      return false;
    }
    seen.push_back(host);
    for (std::size_t r = first; r < first + per_host; ++r) {
      if (hosts[r] != host) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

HostLayout layout_of(const std::vector<std::string>& hosts, int rank) {
  check(rank >= 0 && rank < static_cast<int>(hosts.size()), "the rank is one of the group");
  HostLayout layout;
  for (int r = 0; r < static_cast<int>(hosts.size()); ++r) {
    if (hosts[static_cast<std::size_t>(r)] == hosts[static_cast<std::size_t>(rank)]) {
      layout.local_rank += r < rank ? 1 : 0;
      layout.local.push_back(r);
    }
  }
  layout.is_regular = is_regular(hosts, layout.local.size());
  if (layout.is_regular) {
    for (int r = layout.local_rank; r < static_cast<int>(hosts.size()); r += layout.per_host()) {
      layout.across.push_back(r);
    }
    layout.keeps_tree_order = std::has_single_bit(layout.across.size());
  }
  return layout;
}

}  // namespace trireme
