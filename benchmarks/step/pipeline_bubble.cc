#include "benchmarks/step/pipeline_bubble.h"

#include <algorithm>
#include <cstring>

#include "benchmarks/p2p/point_to_point.h"
#include "benchmarks/report.h"
#include "src/parallel/pipeline/simulation.h"

namespace trireme {
namespace {

enum Column : std::size_t { kSeconds, kComputing, kTie, kChunks };
constexpr std::size_t kCostsAChunk = 3;

// Returns the number of values recorded per training step.
std::size_t row_width(const PipelineSteps& steps, int chunks) {
  std::size_t most = 0;
  for (const auto& stage : steps) {
    most = std::max(most, stage.size());
  }
  return kChunks + kCostsAChunk * static_cast<std::size_t>(chunks) + most;
}

double mean_tie(const std::vector<TimedStep>& timeline) {
  double seconds = 0;
  double ties = 0;
  for (const TimedStep& timed : timeline) {
    if (timed.step.kind == PipelineStep::Kind::tie) {
      seconds += timed.end - timed.start;
      ties += 1;
    }
  }
  return ties > 0 ? seconds / ties : 0;
}

}  // namespace

PipelineBubble::PipelineBubble(PipelineSchedule schedule, const PipelineShape& shape)
    : shape_(shape),
      steps_(make_schedules(schedule, shape)),
      width_(row_width(steps_, shape.chunks)) {}

void PipelineBubble::add(const PipelineRunner::Timings& timings) {
  rows_.insert(rows_.end(), {timings.seconds, timings.compute_seconds, mean_tie(timings.timeline)});
  for (const StageCosts& c : mean_costs(timings.timeline, shape_.chunks)) {
    rows_.insert(rows_.end(), {c.forward, c.backward_input, c.backward_weight});
  }
  for (const TimedStep& timed : timings.timeline) {
    rows_.push_back(timed.end - timed.start);
  }
  rows_.resize((rows_.size() + width_ - 1) / width_ * width_);
}

// All stages start together, so the slowest one determines the duration.
double PipelineBubble::measured(const StageRows& stages) const {
  double seconds = 0;
  double computing = 0;
  for (const double* stage : stages) {
    seconds = std::max(seconds, stage[kSeconds]);
    computing += stage[kComputing];
  }
  return 1 - computing / (seconds * static_cast<double>(stages.size()));
}

double PipelineBubble::predicted(const StageRows& stages, double transfer_seconds) const {
  PipelineCosts costs = equal_costs(shape_, {}, transfer_seconds);
  costs.tie = stages.back()[kTie];
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const double* cost = stages[static_cast<std::size_t>(stage)] + kChunks;
    for (int chunk = 0; chunk < shape_.chunks; ++chunk, cost += kCostsAChunk) {
      costs.stages[static_cast<std::size_t>(shape_.virtual_stage(stage, chunk))] = {
          cost[0], cost[1], cost[2]};
    }
  }
  return simulate(steps_, shape_, costs).bubble_fraction();
}

double PipelineBubble::replayed(const StageRows& stages, double transfer_seconds) const {
  PipelineCosts costs = equal_costs(shape_, {}, transfer_seconds);
  for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
    const double* const first =
        stages[stage] + kChunks + kCostsAChunk * static_cast<std::size_t>(shape_.chunks);
    costs.steps.emplace_back(first, first + steps_[stage].size());
  }
  return simulate(steps_, shape_, costs).bubble_fraction();
}

PipelineBubble::Fractions PipelineBubble::fractions(Communicator& pp,
                                                    double transfer_seconds) const {
  std::vector<double> all(rows_.size() * static_cast<std::size_t>(pp.size()));
  std::copy(rows_.begin(), rows_.end(),
            all.begin() + static_cast<std::ptrdiff_t>(rows_.size()) * pp.rank());
  pp.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::f64}).wait();
  std::vector<double> seen;
  std::vector<double> simulated;
  std::vector<double> again;
  for (std::size_t row = 0; row < rows_.size(); row += width_) {
    StageRows stages;
    for (std::size_t first = row; first < all.size(); first += rows_.size()) {
      stages.push_back(all.data() + first);
    }
    seen.push_back(measured(stages));
    simulated.push_back(predicted(stages, transfer_seconds));
    again.push_back(replayed(stages, transfer_seconds));
  }
  return {median(seen), median(simulated), median(again)};
}

double measure_transfer(Communicator& pp, Pool& pool, std::int64_t bytes) {
  const int peer = pp.rank() ^ 1;
  double seconds = 0;
  if (peer < pp.size()) {
    const Buffer buffer = pool.allocate(bytes);
    std::memset(buffer.data(), 0, static_cast<std::size_t>(bytes));
    const PointToPoint how{.peer = peer, .sends = peer > pp.rank(), .warmup = 5, .iterations = 25};
    seconds = median(latency_seconds(pp, buffer.view(DType::u8), buffer.view(DType::u8), how));
  }
  return all_reduce_value(pp, seconds, ReduceOp::max);
}

}  // namespace trireme
