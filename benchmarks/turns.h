// Times several ways to do the same thing in alternation, A B A B, on all ranks of a group. Before
// each sample the ranks meet at two barriers in a row, so that no rank is still asleep. A sample is
// the largest of the ranks' times.
#pragma once

#include <functional>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct TurnOptions {
  int warmup = 5;       // calls that are not timed
  int iterations = 20;  // samples per way
  // Calls per sample, which run back to back and whose time is divided by their number. 0 means as
  // many as take kSampleSeconds, at most kMostAggregated, so that leaving the barrier costs little.
  int aggregated = 0;
};

inline constexpr double kSampleSeconds = 200e-6;
inline constexpr int kMostAggregated = 100;

struct TurnSamples {
  std::vector<double> seconds;  // seconds per call, one entry per sample; the same on every rank
  int aggregated = 1;
};

// Returns one entry per way, in order. Collective: every rank passes the same ways.
std::vector<TurnSamples> take_turns(Communicator& comm,
                                    const std::vector<std::function<void()>>& ways,
                                    const TurnOptions& options);

}  // namespace trireme
