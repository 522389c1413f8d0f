#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/plan/search.h"

namespace trireme {
namespace {

// What products need for full speed: heads of a multiple of 8 elements (64 is best), edges of a
// multiple of 128 per rank (Anthony et al., 2024, arXiv:2401.14489, section VI).
constexpr std::int64_t kHeadUnit = 8;
constexpr std::int64_t kBestHeadUnit = 64;
constexpr std::int64_t kEdge = 128;

// Returns by how much the step would be shorter with another head size, as a share.
double head_loss(const PlanTask& task, const Cluster& cluster, const PlanLayout& layout) {
  PlanTask better = task;
  better.model.head_dim = (task.model.head_dim + kHeadUnit - 1) / kHeadUnit * kHeadUnit;
  const auto seconds_of = [&](const PlanTask& each) {
    return step_time(work_of(each, cluster), layout, BubbleMethod::formula).total();
  };
  return 1 - seconds_of(better) / seconds_of(task);
}

// What the prediction leaves out, or rests on.
std::vector<std::string> doubts(const PlanTask& task, const Cluster& cluster) {
  std::vector<std::string> warnings;
  if (task.has_frozen) {
    warnings.emplace_back(
        "the time is that of training all weights; a step has no products for the gradients of "
        "frozen ones and updates less");
  }
  if (task.precision == PlanPrecision::fp8 && cluster.device.fp8_tflops <= 0) {
    warnings.emplace_back(
        "the cluster file gives the devices no rate for fp8 (device.fp8_tflops): products take the "
        "time of bf16");
  }
  constexpr double kDoubtful = 50;
  if (cluster.residual_percent > kDoubtful) {
    warnings.push_back(
        fmt::format("the cluster file says that it is wrong by {:g} % in the mean "
                    "(residual_percent): calibrate again on an idle machine",
                    cluster.residual_percent));
  }
  return warnings;
}

}  // namespace

std::vector<std::string> plan_warnings(const PlanTask& task, const Cluster& cluster,
                                       const PlanLayout& layout) {
  const PlanModel& m = task.model;
  std::vector<std::string> warnings = doubts(task, cluster);
  const auto edge = [&](const char* what, std::int64_t value, std::int64_t unit,
                        const std::string& formula) {
    if (value % unit != 0) {
      warnings.push_back(
          fmt::format("{} {} is not a multiple of {} = {}: products with it waste part of their "
                      "last tiles; {} is the next that is",
                      what, value, formula, unit, (value + unit - 1) / unit * unit));
    }
  };
  if (m.head_dim % kHeadUnit != 0) {
    warnings.push_back(fmt::format(
        "head size {} is not a multiple of {}: attention cannot use the units for products, which "
        "costs {:.0f} % of the step; with {} heads it would be {}",
        m.head_dim, kHeadUnit, 100 * std::max(0.0, head_loss(task, cluster, layout)),
        m.hidden / kBestHeadUnit, kBestHeadUnit));
  } else if (m.head_dim % kBestHeadUnit != 0) {
    warnings.push_back(
        fmt::format("head size {} is not a multiple of {}, the size that products "
                    "and attention are made for",
                    m.head_dim, kBestHeadUnit));
  }
  edge("hidden", m.hidden, kEdge * layout.tp, fmt::format("128 x tp {}", layout.tp));
  edge("ffn", m.ffn, kEdge * layout.tp, fmt::format("128 x tp {}", layout.tp));
  edge("vocab", m.vocab, kEdge * layout.tp, fmt::format("128 x tp {}", layout.tp));
  const std::int64_t stages = layout.pp * layout.virtual_stages;
  if (m.layers % stages != 0) {
    warnings.push_back(
        fmt::format("layers {} is not a multiple of pp {} x v {} = {}: the fullest "
                    "stage makes the others wait",
                    m.layers, layout.pp, layout.virtual_stages, stages));
  }
  return warnings;
}

std::vector<std::string> advice_to_fit(const PlanTask& task, const Cluster& cluster,
                                       const PlanResult& result, std::int64_t most_nodes) {
  std::vector<std::string> advice;
  if (!result.nearest) {
    advice.push_back(fmt::format(
        "no layout divides the model and train.global_batch {} among the ranks: choose a global "
        "batch that is a multiple of a power of two, or another number of nodes",
        task.global_batch));
    return advice;
  }
  const PlanCandidate& nearest = *result.nearest;
  const auto gib = [](double bytes) { return bytes / 0x1p30; };
  advice.push_back(fmt::format("the layout that needs least memory is {} with {:.1f} GiB of {:.1f}",
                               layout_text(nearest.layout), gib(nearest.memory.total()),
                               gib(static_cast<double>(cluster.device.memory))));
  if (task.micro_batch || task.recompute) {
    PlanTask free = task;
    free.micro_batch.reset();
    free.recompute.reset();
    const PlanResult found = plan_ranks(free, cluster, {nearest.layout.ranks()});
    if (!found.candidates.empty()) {
      const PlanLayout& l = found.candidates.front().layout;
      advice.push_back(fmt::format("it would fit with train.micro_batch={} train.recompute={}: {}",
                                   l.micro_batch, name_of(l.recompute), layout_text(l)));
    }
  }
  Cluster larger = cluster;
  for (std::int64_t nodes = 2 * most_nodes; nodes <= 65536; nodes *= 2) {
    larger.nodes = static_cast<int>(nodes);
    if (!plan_layouts(task, larger, {nodes}).candidates.empty()) {
      advice.push_back(fmt::format("it would fit on {} nodes", nodes));
      break;
    }
  }
  advice.push_back(fmt::format("it would fit on these nodes with devices of {:.0f} GiB",
                               std::ceil(gib(nearest.memory.total()))));
  return advice;
}

}  // namespace trireme
