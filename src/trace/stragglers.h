// Which ranks compute slower than others that do the same work: a pure function of their times.
//
// A rank's slowness is its time over that of its peers: the lower median, so that up to half of
// them may be slow. Over all ranks its robust z-score is 0.6745 (slowness - median) / MAD, where
// MAD is the median of the distances from the median (Iglewicz and Hoaglin, How to detect and
// handle outliers, 1993, 3.3); above 3.5, and more than 5 % above the median, a rank is a
// straggler.
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
  double of_peers = 1;  // 1: as fast as they are; always where there are none
  double score = 0;
  bool straggles = false;
};

// In the order of the times.
std::vector<Slowness> judge_slowness(const std::vector<ComputeTime>& times);

}  // namespace trireme
