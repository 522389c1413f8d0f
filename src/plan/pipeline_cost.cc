#include "src/plan/pipeline_cost.h"

#include <algorithm>

namespace trireme {
namespace {

struct Passes {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

// Returns what each stage needs for a micro-batch. A balanced pipeline divides all equally, apart
// from the teacher.
std::vector<Passes> stage_passes(const PlanLayout& layout, const StagePass& pass, bool balanced) {
  const auto p = static_cast<std::size_t>(layout.pp);
  std::vector<Passes> stages(p, {pass.forward, pass.backward});
  stages.back().forward += pass.teacher;
  const Passes more{pass.head_forward + pass.embedding_forward,
                    pass.head_backward + pass.embedding_backward};
  if (balanced) {
    for (Passes& stage : stages) {
      stage.forward += more.forward / static_cast<double>(p);
      stage.backward += more.backward / static_cast<double>(p);
    }
    return stages;
  }
  stages.front().forward += pass.embedding_forward;
  stages.front().backward += pass.embedding_backward;
  stages.back().forward += pass.head_forward;
  stages.back().backward += pass.head_backward;
  return stages;
}

const Passes& busiest(const std::vector<Passes>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const Passes& a, const Passes& b) { return a.total() < b.total(); });
}

// Backward's two halves take equal times: a product each.
StageCosts costs_of(const Passes& pass) {
  return {pass.forward, pass.backward / 2, pass.backward / 2};
}

// Beyond three rounds of its stages a schedule repeats itself, and each further micro-batch takes
// as long as the busiest stage. Returns as many as that, or all if they are fewer.
std::int64_t simulated_micro_batches(const PlanLayout& layout) {
  return std::min(layout.micro_batches, 3 * layout.pp);
}

PipelineSimulation simulated_schedule(const PlanLayout& layout, const std::vector<Passes>& stages) {
  PipelineShape shape;
  shape.stages = static_cast<int>(layout.pp);
  shape.chunks = static_cast<int>(layout.virtual_stages);
  shape.micro_batches = simulated_micro_batches(layout);
  PipelineCosts costs;
  const auto chunks = static_cast<double>(layout.virtual_stages);
  for (int stage = 0; stage < shape.virtual_stages(); ++stage) {
    Passes pass = stages[static_cast<std::size_t>(stage % shape.stages)];
    const Passes& inner = stages[stages.size() > 2 ? 1 : 0];
    // Only the first and the last virtual stage have the embedding and the head.
    const bool edge = stage == 0 || stage == shape.virtual_stages() - 1;
    const Passes each{inner.forward / chunks, inner.backward / chunks};
    if (edge) {
      pass = {each.forward + pass.forward - inner.forward,
              each.backward + pass.backward - inner.backward};
    } else {
      pass = each;
    }
    costs.stages.push_back(costs_of(pass));
  }
  return simulate(make_schedules(layout.schedule, shape), shape, costs);
}

double simulated_seconds(const PlanLayout& layout, const std::vector<Passes>& stages) {
  const double first = simulated_schedule(layout, stages).seconds;
  const auto left = static_cast<double>(layout.micro_batches - simulated_micro_batches(layout));
  return first + left * busiest(stages).total();
}

double formula_seconds(const PlanLayout& layout, const std::vector<Passes>& stages) {
  const double most = busiest(stages).total();
  const auto m = static_cast<double>(layout.micro_batches);
  const auto p = static_cast<double>(layout.pp);
  double warm = stages.front().total();
  if (layout.schedule == PipelineSchedule::zero_bubble) {
    // F + B - 2W of Qi et al. (2023), table 2, with B = W
    warm = std::max(0.0, stages.front().forward);
  }
  return m * most + (p - 1) * warm / static_cast<double>(layout.virtual_stages);
}

}  // namespace

PipelineSimulation pipeline_timeline(const PlanLayout& layout, const StagePass& pass,
                                     bool balanced) {
  return simulated_schedule(layout, stage_passes(layout, pass, balanced));
}

PipelineTime pipeline_time(const PlanLayout& layout, const StagePass& pass, bool balanced,
                           BubbleMethod method) {
  const std::vector<Passes> stages = stage_passes(layout, pass, balanced);
  PipelineTime time;
  if (layout.pp == 1) {
    time.busy = static_cast<double>(layout.micro_batches) *
                (pass.forward + pass.backward + pass.head_forward + pass.head_backward +
                 pass.embedding_forward + pass.embedding_backward + pass.teacher);
    time.total = time.busy;
    return time;
  }
  time.busy = static_cast<double>(layout.micro_batches) * busiest(stages).total();
  time.total = method == BubbleMethod::simulated ? simulated_seconds(layout, stages)
                                                 : formula_seconds(layout, stages);
  return time;
}

}  // namespace trireme
