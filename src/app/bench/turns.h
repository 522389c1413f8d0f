// Turns: times several ways of doing the same thing in alternation, A B A B, on all ranks of a
// group at once. Before each sample the ranks meet at two barriers (the second right after the
// first, so that none still sleeps); a sample is the largest of the ranks' times.
#pragma once

#include <functional>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct TurnOptions {
  int warmup = 5;       // calls that are not timed
  int iterations = 20;  // samples of each way
  // Calls back to back in a sample, whose time is divided by them; 0 takes as many as fill
  // kSampleSeconds, at most kMostAggregated, so that leaving the barrier weighs little.
  int aggregated = 0;
};

inline constexpr double kSampleSeconds = 200e-6;
inline constexpr int kMostAggregated = 100;

struct TurnSamples {
  std::vector<double> seconds;  // of one call, a sample; the same on every rank
  int aggregated = 1;
};

// One entry a way, in order. Collective: every rank brings the same ways.
std::vector<TurnSamples> take_turns(Communicator& comm,
                                    const std::vector<std::function<void()>>& ways,
                                    const TurnOptions& options);

}  // namespace trireme
