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

double seconds_of(Communicator& comm, const std::function<void()>& way, int calls) {
  meet(comm);
  const Stopwatch watch;
  for (int call = 0; call < calls; ++call) {
    way();
  }
  return watch.seconds() / calls;
}

int choose_aggregated(Communicator& comm, const std::function<void()>& way) {
  constexpr int kTrials = 5;
  const double own = seconds_of(comm, way, kTrials);
  const double seconds = all_reduce_value(comm, own, ReduceOp::max);
  return static_cast<int>(
      std::clamp(std::ceil(kSampleSeconds / seconds), 1.0, static_cast<double>(kMostAggregated)));
}

}  // namespace

std::vector<TurnSamples> take_turns(Communicator& comm,
                                    const std::vector<std::function<void()>>& ways,
                                    const TurnOptions& options) {
  std::vector<TurnSamples> all(ways.size());
  for (std::size_t w = 0; w < ways.size(); ++w) {
    for (int call = 0; call < options.warmup; ++call) {
      ways[w]();
    }
    all[w].aggregated =
        options.aggregated > 0 ? options.aggregated : choose_aggregated(comm, ways[w]);
  }
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      all[w].seconds.push_back(seconds_of(comm, ways[w], all[w].aggregated));
    }
  }
  for (TurnSamples& samples : all) {
    const auto count = static_cast<std::int64_t>(samples.seconds.size());
    comm.all_reduce({samples.seconds.data(), count, DType::f64}, ReduceOp::max).wait();
  }
  return all;
}

}  // namespace trireme
