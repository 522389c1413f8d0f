#include "src/study/link_rounds.h"

#include <algorithm>
#include <bit>
#include <set>

#include "benchmarks/tournament.h"

namespace trireme {

int default_link_rounds(int nodes) {
  const int all = std::max(nodes + nodes % 2 - 1, 0);
  if (nodes <= kMostNodesOfAllPairs) {
    return all;
  }
  return 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(nodes - 1)));
}

NodePairRounds link_rounds(const std::vector<std::string>& nodes, int rounds) {
  const int count = static_cast<int>(nodes.size());
  const auto all = tournament(count);
  const std::size_t wanted = std::min(
      all.size(), static_cast<std::size_t>(rounds > 0 ? rounds : default_link_rounds(count)));
  NodePairRounds chosen;
  for (std::size_t i = 0; i < wanted; ++i) {
    chosen.emplace_back();
    for (const auto& [a, b] : all[i * all.size() / wanted]) {
      chosen.back().emplace_back(nodes[static_cast<std::size_t>(a)],
                                 nodes[static_cast<std::size_t>(b)]);
    }
  }
  return chosen;
}

NodePairRounds disjoint_rounds(const std::vector<NodePair>& pairs) {
  NodePairRounds rounds;
  std::vector<std::set<std::string>> busy;  // by round
  for (const NodePair& pair : pairs) {
    std::size_t round = 0;
    while (round < rounds.size() &&
           (busy[round].contains(pair.first) || busy[round].contains(pair.second))) {
      ++round;
    }
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({pair.first, pair.second});
  }
  return rounds;
}

}  // namespace trireme
