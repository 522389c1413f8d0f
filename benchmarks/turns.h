// Times several ways to do the same thing in alternation, A B A B, on all ranks of a group. Before
// each sample the ranks meet at two barriers in a row, so that no rank is still asleep. A sample is
// the largest of the ranks' times.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "benchmarks/sampling.h"
#include "mpi/communicator.h"

namespace trireme {

inline constexpr double kSampleSeconds = 200e-6;
inline constexpr int kMostAggregated = 100;

struct TurnOptions {
  int warmup = 5;       // calls that are not timed
  int iterations = 20;  // samples per way
  double seconds = 0;   // if above 0, takes samples for this time, instead of `iterations`
  std::optional<StopRule> stop = {};  // takes the place of `iterations` and `seconds`

  StopRule rule() const { return stop ? *stop : StopRule::count_or_duration(iterations, seconds); }
  // Ends a sample when the last rank has ended, whenever it began. This matters for the work of all
  // ranks together if they take turns on the cores.
  bool until_all_end = false;
  // Calls per sample, which run back to back and whose time is divided by their number. 0 means as
  // many as take sample_seconds, at most kMostAggregated, so that the barriers cost little.
  int aggregated = 0;
  double sample_seconds = kSampleSeconds;
  // If above 0, limits the warm-up of each way to this time.
  double warmup_seconds = 0;
  // Waits for work that the calls have queued on a device; called at the end of the warm-up and of
  // each sample. Empty if the calls wait for their own work.
  std::function<void()> settle = {};
};

struct TurnSamples {
  // Seconds per call, one entry per sample, which are the same on every rank.
  std::vector<double> seconds;
  // Seconds of each rank from its own begin to its own end, in rank order.
  std::vector<std::vector<double>> by_rank;
  int aggregated = 1;
  int warmup = 0;  // calls before the samples
};

// Describes the samples for the JSON document. The warm-up is that of the options, which it may not
// have reached if it is limited.
HowMeasured how_turns_measure(const TurnOptions& options);

// Returns one entry per way, in order. Collective: every rank passes the same ways.
std::vector<TurnSamples> take_turns(Communicator& comm,
                                    const std::vector<std::function<void()>>& ways,
                                    const TurnOptions& options);

}  // namespace trireme
