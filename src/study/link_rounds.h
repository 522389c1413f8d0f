// Plans which links of a machine are measured, in rounds of pairs that have no node in common, so
// that the pairs of a round can be measured at the same time. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trireme {

using NodePair = std::pair<std::string, std::string>;
using NodePairRounds = std::vector<std::vector<NodePair>>;

// On up to this many nodes, every pair is measured.
inline constexpr int kMostNodesOfAllPairs = 32;

// Returns in how many rounds the links of `nodes` nodes are measured. All pairs take as many rounds
// as there are nodes; on more than kMostNodesOfAllPairs, 2 log2(nodes) rounds, rounded up.
int default_link_rounds(int nodes);

// Returns `rounds` rounds of the tournament of all nodes, evenly spread, or all if there are fewer.
// In each round, every node has one partner (one node rests if their number is odd), and no pair
// occurs twice. rounds: 0 for default_link_rounds().
NodePairRounds link_rounds(const std::vector<std::string>& nodes, int rounds);

// Distributes pairs over rounds in which no node occurs twice, in the given order.
NodePairRounds disjoint_rounds(const std::vector<NodePair>& pairs);

}  // namespace trireme
