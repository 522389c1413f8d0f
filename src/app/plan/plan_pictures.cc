#include "src/app/plan/plan_pictures.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/plan/simulate/goodput.h"
#include "src/plan/simulate/job_model.h"
#include "src/plan/step_parts.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

const char* kind_name(PipelineStep::Kind kind) {
  return kind == PipelineStep::Kind::forward           ? "forward"
         : kind == PipelineStep::Kind::backward_weight ? "weight gradients"
                                                       : "backward";
}

Json step_json(const char* kind, double from, double to, const std::string& what) {
  return {{"kind", kind}, {"from", from}, {"to", to}, {"what", what}};
}

JobModel job_of(const PlanView& view, const PlanCandidate& c) {
  constexpr double kMostDays = 90;
  const Cluster::Failures& failures = view.cluster.failures;
  JobModel job;
  job.nodes = c.nodes;
  job.days = std::clamp(c.outlook.days, 1.0, kMostDays);
  job.step_seconds = c.time.total();
  job.rates = {.source = "none", .node = failures.per_1000_node_days};
  job.times.detect[static_cast<std::size_t>(JobFaultKind::node)] = failures.detect_seconds;
  job.times.relaunch = failures.relaunch_seconds;
  job.checkpoint.memory_every = {0, ""};
  job.checkpoint.stall = c.outlook.stall_seconds;
  job.checkpoint.disk_seconds = c.outlook.save_seconds;
  // Spares, so that repairs do not count: those that fail within a day, several times.
  job.spares = 2 + static_cast<std::int64_t>(failures.per_1000_node_days *
                                             static_cast<double>(c.nodes) / 250);
  check_job_model(job);
  return job;
}

}  // namespace

Json timeline_json(const PlanView& view, const PlanCandidate& c) {
  const PlanWork work = work_of(view.task, view.cluster);
  const StepParts parts = step_parts(work, c.layout, BubbleMethod::simulated, {});
  const PipelineSimulation run =
      pipeline_timeline(c.layout, parts.pass, view.task.software.balances_stages);
  const double replicas = run.seconds + c.time.gradients + c.time.parameters;
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
    Json steps = Json::array();
    for (const TimedStep& step : run.stages[stage]) {
      steps.push_back(
          step_json(kind_name(step.step.kind), step.start, step.end, describe(step.step)));
    }
    if (replicas > run.seconds) {
      steps.push_back(step_json("replicas", run.seconds, replicas, "replicas"));
    }
    steps.push_back(step_json("optimizer", replicas, replicas + c.time.optimizer, "optimizer"));
    stages.push_back({{"busy_seconds", run.busy[stage]},
                      {"idle_seconds", run.bubble(static_cast<int>(stage))},
                      {"steps", std::move(steps)}});
  }
  return {{"micro_batches", c.layout.micro_batches},
          {"drawn_micro_batches", std::min(c.layout.micro_batches, 3 * c.layout.pp)},
          {"stages", std::move(stages)}};
}

Json goodput_json(const PlanView& view, const PlanCandidate& c) {
  constexpr int kDraws = 200;
  constexpr int kQuantiles = 20;
  if (view.cluster.failures.per_1000_node_days <= 0) {
    return nullptr;
  }
  const JobModel job = job_of(view, c);
  // With more failures than these the simulation would take minutes and show nothing else.
  constexpr double kMostFailures = 1e4;
  if (job.days * view.cluster.failures.per_1000_node_days / 1000 * static_cast<double>(c.nodes) >
      kMostFailures) {
    return nullptr;
  }
  const Goodput goodput = summarize(simulate_draws(job, 1, kDraws, 1));
  Json quantiles = Json::array();
  for (int i = 0; i <= kQuantiles; ++i) {
    quantiles.push_back(goodput.quantile(static_cast<double>(i) / kQuantiles));
  }
  return {{"draws", kDraws}, {"days", job.days}, {"quantiles", std::move(quantiles)}};
}

}  // namespace trireme
