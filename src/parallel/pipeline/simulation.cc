#include "src/parallel/pipeline/simulation.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Kind = PipelineStep::Kind;

class Simulator {
 public:
  Simulator(const PipelineSteps& steps, const PipelineShape& shape, const PipelineCosts& costs)
      : steps_(steps), shape_(shape), costs_(costs) {
    check(static_cast<int>(steps.size()) == shape.stages, "a schedule has steps for every stage");
    check(static_cast<int>(costs.stages.size()) == shape.virtual_stages(),
          "every virtual stage has its costs");
    check(costs.steps.empty() || costs.steps.size() == steps.size(), "every stage has its steps");
    const auto pieces = static_cast<std::size_t>(shape.virtual_stages() * shape.micro_batches);
    forward_end_.resize(pieces);
    gradient_end_.resize(pieces);
    next_.resize(steps.size());
    result_.stages.resize(steps.size());
  }

  PipelineSimulation run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (int stage = 0; stage < shape_.stages; ++stage) {
        while (advance(stage)) {
          moves = true;
        }
      }
    }
    check_all_ended();
    for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
      summarize(stage);
    }
    return std::move(result_);
  }

 private:
  using Moment = std::optional<double>;  // empty: not known yet

  std::size_t place(int virtual_stage, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(virtual_stage * shape_.micro_batches + micro_batch);
  }

  // Returns when the result of another virtual stage arrives on this rank.
  Moment arrival(const Moment& made) const {
    return made && shape_.stages > 1 ? Moment(*made + costs_.transfer) : made;
  }

  // Returns when the step's inputs are available.
  Moment ready(int stage, const PipelineStep& step) const {
    const int at = shape_.virtual_stage(stage, step.chunk);
    const std::int64_t m = step.micro_batch;
    const bool is_first = at == 0;
    const bool is_last = at == shape_.virtual_stages() - 1;
    switch (step.kind) {
      case Kind::forward:
        return is_first ? Moment(0) : arrival(forward_end_[place(at - 1, m)]);
      case Kind::backward_weight:
        return gradient_end_[place(at, m)];
      case Kind::tie:
        return gradient_end_[place(at, m)] ? arrival(gradient_end_[place(0, m)]) : Moment();
      case Kind::backward:
      case Kind::backward_input:
        break;
    }
    const Moment& own = forward_end_[place(at, m)];
    return own && !is_last ? arrival(gradient_end_[place(at + 1, m)]) : own;
  }

  double cost(int stage, const PipelineStep& step) const {
    if (!costs_.steps.empty()) {
      const auto index = static_cast<std::size_t>(stage);
      return costs_.steps[index].at(next_[index]);
    }
    const int at = shape_.virtual_stage(stage, step.chunk);
    const StageCosts& costs = costs_.stages[static_cast<std::size_t>(at)];
    switch (step.kind) {
      case Kind::forward:
        return costs.forward;
      case Kind::backward_input:
        return costs.backward_input;
      case Kind::backward_weight:
        return costs.backward_weight;
      case Kind::tie:
        return costs_.tie;
      case Kind::backward:
        break;
    }
    return costs.backward_input + costs.backward_weight;
  }

  // Runs the stage's next step if its inputs are available, and returns whether it did.
  bool advance(int stage) {
    const auto index = static_cast<std::size_t>(stage);
    if (next_[index] == steps_[index].size()) {
      return false;
    }
    const PipelineStep& step = steps_[index][next_[index]];
    const Moment from = ready(stage, step);
    if (!from) {
      return false;
    }
    std::vector<TimedStep>& timeline = result_.stages[index];
    const double start = std::max(*from, timeline.empty() ? 0 : timeline.back().end);
    const double end = start + cost(stage, step);
    timeline.push_back({step, start, end});
    const std::size_t piece = place(shape_.virtual_stage(stage, step.chunk), step.micro_batch);
    if (step.kind == Kind::forward) {
      forward_end_[piece] = end;
    } else if (sends_gradient(step.kind)) {
      gradient_end_[piece] = end;
    }
    ++next_[index];
    return true;
  }

  void check_all_ended() const {
    std::string stuck;
    for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
      if (next_[stage] < steps_[stage].size()) {
        stuck += fmt::format("; stage {} before {}", stage, describe(steps_[stage][next_[stage]]));
      }
    }
    check(stuck.empty(), ("a schedule deadlocks" + stuck).c_str());
  }

  void summarize(std::size_t stage) {
    double busy = 0;
    std::int64_t live = 0;
    std::int64_t peak = 0;
    for (const TimedStep& timed : result_.stages[stage]) {
      busy += timed.end - timed.start;
      const Kind kind = timed.step.kind;
      live += kind == Kind::forward ? 1 : 0;
      peak = std::max(peak, live);
      live -= kind == Kind::backward || kind == Kind::backward_weight ? 1 : 0;
      result_.seconds = std::max(result_.seconds, timed.end);
    }
    result_.busy.push_back(busy);
    result_.peak_live.push_back(peak);
  }

  const PipelineSteps& steps_;
  const PipelineShape& shape_;
  const PipelineCosts& costs_;
  std::vector<Moment> forward_end_;   // by virtual stage and micro-batch
  std::vector<Moment> gradient_end_;  // likewise: end of the step that sends the gradient
  std::vector<std::size_t> next_;     // next step, by stage
  PipelineSimulation result_;
};

}  // namespace

PipelineCosts equal_costs(const PipelineShape& shape, const StageCosts& each, double transfer) {
  return {std::vector<StageCosts>(static_cast<std::size_t>(shape.virtual_stages()), each),
          transfer,
          0,
          {}};
}

double PipelineSimulation::bubble_fraction() const {
  const double all = seconds * static_cast<double>(busy.size());
  return all > 0 ? 1 - std::accumulate(busy.begin(), busy.end(), 0.0) / all : 0;
}

double PipelineSimulation::bubble_of_ideal() const {
  const double worked = std::accumulate(busy.begin(), busy.end(), 0.0);
  return worked > 0 ? seconds * static_cast<double>(busy.size()) / worked - 1 : 0;
}

std::vector<StageCosts> mean_costs(const std::vector<TimedStep>& timeline, int chunks) {
  std::vector<StageCosts> sums(static_cast<std::size_t>(chunks), StageCosts{0, 0, 0});
  std::vector<std::int64_t> forwards(sums.size());  // equal to the number of backwards
  for (const TimedStep& timed : timeline) {
    const double seconds = timed.end - timed.start;
    const auto chunk = static_cast<std::size_t>(timed.step.chunk);
    StageCosts& sum = sums.at(chunk);
    if (timed.step.kind == Kind::forward) {
      sum.forward += seconds;
      ++forwards[chunk];
    } else if (timed.step.kind == Kind::backward_weight) {
      sum.backward_weight += seconds;
    } else if (timed.step.kind != Kind::tie) {
      sum.backward_input += seconds;
    }
  }
  for (std::size_t chunk = 0; chunk < sums.size(); ++chunk) {
    const auto count = static_cast<double>(std::max<std::int64_t>(forwards[chunk], 1));
    sums[chunk].forward /= count;
    sums[chunk].backward_input /= count;
    sums[chunk].backward_weight /= count;
  }
  return sums;
}

PipelineSimulation simulate(const PipelineSteps& steps, const PipelineShape& shape,
                            const PipelineCosts& costs) {
  return Simulator(steps, shape, costs).run();
}

}  // namespace trireme
