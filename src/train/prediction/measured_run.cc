#include "src/train/prediction/measured_run.h"

#include "src/plan/planned_run.h"

namespace trireme {
namespace {

// Returns the mean over the ranks. Collective.
StepSplit mean_of_ranks(Communicator& world, const StepSplit& own) {
  auto parts = own.parts();
  world
      .all_reduce({parts.data(), static_cast<std::int64_t>(parts.size()), DType::f64},
                  ReduceOp::sum)
      .wait();
  for (double& part : parts) {
    part /= world.size();
  }
  return StepSplit::of(parts);
}

}  // namespace

MeasuredStep measured_run(const RunConfig& config, const Layout& layout, const StepTimings& timings,
                          std::int64_t memory_bytes, Communicator& world) {
  const PlanTask task = plan_task(config);
  MeasuredStep step;
  step.name = config.run_name.empty() ? config.run_dir.filename().string() : config.run_name;
  step.model = task.model;
  step.precision = task.precision;
  step.layout = plan_layout(config, layout);
  step.steps = timings.steps();
  step.measured = mean_of_ranks(world, timings.middle());
  step.memory_bytes = static_cast<double>(memory_bytes);
  return step;
}

}  // namespace trireme
