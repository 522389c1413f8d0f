// Tournament: who meets whom in which round, so that all pairs meet once and nobody meets two at a
// time (the circle method; Kirkman, 1850). A pure function.
#pragma once

#include <utility>
#include <vector>

namespace trireme {

// The rounds of n players: n - 1 of them, n where n is odd (then one sits out in each). Pairs are
// (lower, higher).
std::vector<std::vector<std::pair<int, int>>> tournament(int n);

}  // namespace trireme
