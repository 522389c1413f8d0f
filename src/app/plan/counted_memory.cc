#include "src/app/plan/counted_memory.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/plan/planned_run.h"
#include "src/train/memory/memory_plan.h"

namespace trireme {
namespace {

PlannedMemory planned(const MemoryPlan& plan) {
  const auto real_of = [](std::int64_t bytes) { return static_cast<double>(bytes); };
  PlannedMemory memory;
  memory.parameters = real_of(plan.parameters);
  memory.gradients = real_of(plan.gradients);
  memory.optimizer = real_of(plan.optimizer);
  memory.activations = real_of(plan.activations);
  memory.communication = real_of(plan.communication);
  memory.snapshot = real_of(plan.snapshot);
  memory.reserved = real_of(plan.program);
  return memory;
}

// The most layouts that a plan counts beside those that it shows first.
constexpr std::size_t kMostCounts = 200;

// On a GPU, the file's reserved_memory stands for context and libraries.
MemoryPlan plan_of_rank(const RunConfig& config, const Layout& layout, const Cluster& cluster,
                        int rank) {
  if (cluster.device.kind == "cpu") {
    return plan_memory(config, layout, rank, cluster.device.reserved_memory);
  }
  MemoryPlan plan = plan_of_step(step_memory(config, layout, rank, kCountsCuda));
  plan.program = cluster.device.reserved_memory;
  return plan;
}

}  // namespace

namespace {

// all: whether both ranks are counted even if the first one needs more than its device has.
std::optional<PlannedMemory> count_ranks(const RunConfig& config, const Cluster& cluster,
                                         const PlanLayout& planned_layout, bool all) {
  const std::int64_t passes =
      planned_layout.micro_batches * config.model.layers / planned_layout.pp;
  if (passes > kMostCountedPasses) {
    return std::nullopt;
  }
  const RunConfig run = with_layout(config, planned_layout);
  try {
    const Layout layout =
        make_layout(run, static_cast<int>(planned_layout.ranks()), cluster.device.per_node);
    PlannedMemory most;
    for (const int stage : std::set{0, layout.grid.pp() - 1}) {
      const int rank = layout.grid.rank_at(0, 0, stage);
      const PlannedMemory memory = planned(plan_of_rank(run, layout, cluster, rank));
      if (memory.total() > most.total()) {
        most = memory;
      }
      if (!all && most.total() > static_cast<double>(cluster.device.memory)) {
        break;
      }
    }
    return most;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Counts a candidate that may turn out not to fit.
bool fits_by_count(const RunConfig& config, const Cluster& cluster, PlanCandidate& candidate) {
  if (const auto memory = count_ranks(config, cluster, candidate.layout, false)) {
    candidate.memory = *memory;
    candidate.is_counted = true;
  }
  return candidate.fits(cluster);
}

}  // namespace

std::optional<PlannedMemory> counted_memory(const RunConfig& config, const Cluster& cluster,
                                            const PlanLayout& planned_layout) {
  return count_ranks(config, cluster, planned_layout, true);
}

void count_memory(const RunConfig& config, const Cluster& cluster, std::size_t most,
                  PlanResult& result) {
  std::vector<PlanCandidate> fitting;
  std::set<std::int64_t> settled;  // numbers of nodes whose fastest candidate is known
  std::size_t counts = 0;
  for (PlanCandidate& candidate : result.candidates) {
    const bool is_shown =
        fitting.size() < most || candidate.on_front || settled.count(candidate.nodes) == 0;
    const bool is_counted = is_shown && (fitting.size() < most || counts < kMostCounts);
    counts += is_counted ? 1 : 0;
    if (is_counted ? fits_by_count(config, cluster, candidate) : candidate.fits(cluster)) {
      settled.insert(candidate.nodes);
      fitting.push_back(candidate);
    }
  }
  if (result.candidates.empty() && result.nearest) {
    if (const auto memory = counted_memory(config, cluster, result.nearest->layout)) {
      result.nearest->memory = *memory;
      result.nearest->is_counted = true;
    }
  }
  if (!fitting.empty()) {
    result.nearest.reset();
  } else {
    for (PlanCandidate& candidate : result.candidates) {
      if (candidate.is_counted) {
        candidate.memory = *counted_memory(config, cluster, candidate.layout);
      }
      if (!result.nearest || candidate.memory.total() < result.nearest->memory.total()) {
        result.nearest = candidate;
      }
    }
  }
  result.candidates = std::move(fitting);
  mark_front(result.candidates);  // some that were on it may be gone
}

}  // namespace trireme
