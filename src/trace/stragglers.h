// Decides which ranks compute more slowly than others that do the same work. A pure function of
// their times.
//
// A rank's slowness is its time divided by its peers' lower median, so that up to half of the peers
// may be slow. Its robust z-score over all ranks is 0.6745 (slowness - median) / MAD, where MAD is
// the median of the distances from the median (Iglewicz and Hoaglin, How to detect and handle
// outliers, 1993, 3.3). A rank whose score is above 3.5 and whose slowness is more than 5 % above
// the median is a straggler.
#pragma once

#include <vector>

namespace trireme {

inline constexpr double kStragglerScore = 3.5;
inline constexpr double kStragglerSlowness = 1.05;

struct ComputeTime {
  int peers = 0;       // ranks with the same number do the same work
  double seconds = 0;  // without waiting
};

struct Slowness {
  double of_peers = 1;  // 1 means as fast as the peers; always 1 without peers
  double score = 0;
  bool straggles = false;
};

// Returns one result per rank, in the order of `times`.
std::vector<Slowness> judge_slowness(const std::vector<ComputeTime>& times);

}  // namespace trireme
