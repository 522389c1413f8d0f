#include "benchmarks/turns.h"

#include <algorithm>
#include <cmath>

#include "src/base/stopwatch.h"

namespace trireme {
namespace {

void meet(Communicator& comm) {
  comm.barrier().wait();
  comm.barrier().wait();
}

void repeat(const std::function<void()>& way, int calls, const TurnOptions& options) {
  for (int call = 0; call < calls; ++call) {
    way();
  }
  if (options.settle) {
    options.settle();
  }
}

double seconds_of(Communicator& comm, const std::function<void()>& way, int calls,
                  const TurnOptions& options) {
  meet(comm);
  const Stopwatch watch;
  repeat(way, calls, options);
  return watch.seconds() / calls;
}

bool another_needed(Sampling& sampling, const StopRule& rule, const std::vector<TurnSamples>& taken,
                    const std::vector<std::vector<double>>& agreed) {
  if (rule.precision <= 0) {
    return sampling.more(taken.front().seconds.size());
  }
  return std::any_of(agreed.begin(), agreed.end(),
                     [&](const auto& times) { return sampling.more(times); });
}

// Returns the number of calls.
int warm_up(Communicator& comm, const std::function<void()>& way, const TurnOptions& options) {
  if (options.warmup_seconds <= 0) {
    repeat(way, options.warmup, options);
    return options.warmup;
  }
  int calls = 0;
  const StopRule limit{.least = 0, .most = options.warmup, .seconds = options.warmup_seconds};
  for (Sampling sampling(limit, &comm); sampling.more(static_cast<std::size_t>(calls)); ++calls) {
    repeat(way, 1, options);
  }
  return calls;
}

int choose_aggregated(Communicator& comm, const std::function<void()>& way,
                      const TurnOptions& options) {
  constexpr int kTrials = 5;
  constexpr double kClearlySlow = 10;  // times a sample; then one trial is enough
  if (options.warmup_seconds > 0) {
    const double once = all_reduce_value(comm, seconds_of(comm, way, 1, options), ReduceOp::max);
    if (once > kClearlySlow * options.sample_seconds) {
      return 1;
    }
  }
  const double own = seconds_of(comm, way, kTrials, options);
  const double seconds = all_reduce_value(comm, own, ReduceOp::max);
  return static_cast<int>(std::clamp(std::ceil(options.sample_seconds / seconds), 1.0,
                                     static_cast<double>(kMostAggregated)));
}

}  // namespace

HowMeasured how_turns_measure(const TurnOptions& options) {
  return {
      .warmup = options.warmup,
      .stop = options.rule(),
      .sample = options.until_all_end
                    ? "from the beginning of the calls of a sample until all ranks have ended, per "
                      "call; by_rank: until the rank has ended"
                    : "the slowest rank's time for the calls of a sample, per call",
      .synchronized_by = "two barriers before each sample"};
}

std::vector<TurnSamples> take_turns(Communicator& comm,
                                    const std::vector<std::function<void()>>& ways,
                                    const TurnOptions& options) {
  std::vector<TurnSamples> all(ways.size());
  for (std::size_t w = 0; w < ways.size(); ++w) {
    all[w].warmup = warm_up(comm, ways[w], options);
    all[w].aggregated =
        options.aggregated > 0 ? options.aggregated : choose_aggregated(comm, ways[w], options);
  }
  const StopRule rule = options.rule();
  std::vector<std::vector<double>> counted(ways.size());  // what this rank adds to `seconds`
  std::vector<std::vector<double>> agreed(ways.size());   // the slowest rank's times
  for (Sampling sampling(rule, &comm); another_needed(sampling, rule, all, agreed);) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const Stopwatch watch;
      all[w].seconds.push_back(seconds_of(comm, ways[w], all[w].aggregated, options));
      const double waited = watch.seconds() - all[w].seconds.back() * all[w].aggregated;
      counted[w].push_back(all[w].seconds.back());
      if (options.until_all_end) {
        comm.barrier().wait();
        counted[w].back() = (watch.seconds() - waited) / all[w].aggregated;
      }
      if (rule.precision > 0) {
        agreed[w].push_back(all_reduce_value(comm, counted[w].back(), ReduceOp::max));
      }
    }
  }
  for (std::size_t w = 0; w < ways.size(); ++w) {
    all[w].by_rank = gather_by_rank(comm, all[w].seconds);
    all[w].seconds = slowest(gather_by_rank(comm, counted[w]));
  }
  return all;
}

}  // namespace trireme
