#include "src/plan/planned_run.h"

namespace trireme {
namespace {

// The planner knows no run that recomputes every n-th block: it plans all blocks or none.
PlanRecompute recompute_of(const Recompute& recompute) {
  switch (recompute.kind) {
    case Recompute::Kind::none:
      return PlanRecompute::none;
    case Recompute::Kind::selective:
      return PlanRecompute::selective;
    case Recompute::Kind::full:
      return recompute.every > 2 ? PlanRecompute::none : PlanRecompute::full;
  }
  return PlanRecompute::none;
}

}  // namespace

PlanTask plan_task(const RunConfig& config) {
  PlanTask task;
  task.model = plan_model(config.model, config.data.sequence);
  task.precision = config.train.uses_fp8()            ? PlanPrecision::fp8
                   : config.train.precision == "fp32" ? PlanPrecision::fp32
                                                      : PlanPrecision::bf16;
  task.global_batch = config.train.global_batch;
  task.steps = static_cast<double>(config.train.steps);
  task.powers_of_two = config.reproducibility == "elastic";
  task.software.sums_in_tree = config.reproducibility == "elastic";
  task.has_frozen = config.model.has_frozen();
  if (config.distill.is_on()) {
    task.teacher = plan_model(config.distill.read_model(), config.data.sequence);
  }
  return task;
}

PlanRecompute plan_recompute(std::string_view recompute) {
  for (const auto each : {PlanRecompute::selective, PlanRecompute::full}) {
    if (name_of(each) == recompute) {
      return each;
    }
  }
  return PlanRecompute::none;
}

RunConfig with_layout(RunConfig config, const PlanLayout& layout) {
  ParallelConfig& p = config.parallel;
  p.dp = {layout.dp, ""};
  p.tp = {layout.tp, ""};
  p.pp = {layout.pp, ""};
  p.schedule = name_of(layout.schedule);
  p.virtual_stages = static_cast<int>(layout.virtual_stages);
  p.zero = layout.zero;
  config.train.micro_batch = layout.micro_batch;
  config.train.recompute = name_of(layout.recompute);
  config.train.recompute_every = 1;
  return config;
}

PlanLayout plan_layout(const RunConfig& config, const Layout& layout) {
  PlanLayout planned;
  planned.dp = layout.grid.dp();
  planned.tp = layout.grid.tp();
  planned.pp = layout.grid.pp();
  planned.virtual_stages = layout.shape.chunks;
  planned.schedule = layout.schedule;
  planned.micro_batch = config.train.micro_batch;
  planned.micro_batches = layout.shape.micro_batches;
  planned.zero = layout.zero;
  planned.recompute = recompute_of(layout.recompute);
  planned.sequence_parallel = layout.sequence_parallel && layout.grid.tp() > 1;
  return planned;
}

}  // namespace trireme
