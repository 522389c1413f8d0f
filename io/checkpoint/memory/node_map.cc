#include "io/checkpoint/memory/node_map.h"

#include <algorithm>
#include <map>

namespace trireme {

bool NodeMap::all() const {
  return any() && std::all_of(node_of.begin(), node_of.end(), [](int node) { return node >= 0; });
}

bool NodeMap::leads(int rank) const {
  const int node = node_of[static_cast<std::size_t>(rank)];
  return node >= 0 && ranks[static_cast<std::size_t>(node)].front() == rank;
}

NodeMap map_nodes(Communicator& comm, const NodeMemory& own) {
  const std::string folder = own.folder.string();
  const std::vector<std::string> texts =
      all_gather_text(comm, folder.empty() ? "" : own.name + "\n" + folder);
  NodeMap map;
  std::map<std::string, int> known;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    if (text.empty()) {
      map.node_of.push_back(-1);
      continue;
    }
    const auto [found, is_new] =
        known.try_emplace(comm.host(rank) + "\n" + text, static_cast<int>(map.ranks.size()));
    if (is_new) {
      map.ranks.emplace_back();
      map.names.push_back(text.substr(0, text.find('\n')));
    }
    map.node_of.push_back(found->second);
    map.ranks[static_cast<std::size_t>(found->second)].push_back(rank);
  }
  return map;
}

}  // namespace trireme
