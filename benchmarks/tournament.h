// Plans rounds in which all pairs of players meet exactly once and every player meets at most one
// other per round (the circle method; Kirkman, 1850). A pure function.
#pragma once

#include <utility>
#include <vector>

namespace trireme {

// Returns the rounds of n players: n - 1 of them, or n if n is odd, when one player rests in each.
// Pairs are (lower, higher).
std::vector<std::vector<std::pair<int, int>>> tournament(int n);

}  // namespace trireme
