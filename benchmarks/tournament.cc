#include "benchmarks/tournament.h"

#include <algorithm>

namespace trireme {

std::vector<std::vector<std::pair<int, int>>> tournament(int n) {
  const int places = n + n % 2;  // with an odd number of players, the last place is empty
  const int turning = places - 1;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round < turning; ++round) {
    // One player stays while the others move around a circle; opposite places meet.
    std::vector<std::pair<int, int>> pairs;
    for (int i = 0; i < places / 2; ++i) {
      const int a = i == 0 ? turning : (round + i) % turning;
      const int b = (round + turning - i) % turning;
      if (std::max(a, b) < n) {
        pairs.emplace_back(std::min(a, b), std::max(a, b));
      }
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

}  // namespace trireme
