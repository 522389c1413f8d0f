#include "src/plan/network/scaling.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/figures/line_plot.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<CollectiveAlgorithm, 4> kAlgorithms = {
    CollectiveAlgorithm::ring, CollectiveAlgorithm::tree, CollectiveAlgorithm::hierarchical,
    CollectiveAlgorithm::pairwise};
// Every pair of ranks of an all-to-all is looked at.
constexpr std::int64_t kMostPairwiseNodes = 4096;

double bus_gb(const ScalingPlan& plan, const ScalingPoint& point, const CollectiveTime& time) {
  return bus_rate(plan.kind, point.ranks, plan.bytes, time.seconds) / 1e9;
}

std::string kind_text(const ScalingPlan& plan) {
  return planned_collective_names()[static_cast<std::size_t>(plan.kind)];
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", 1e6 * seconds)
         : seconds < 1  ? fmt::format("{:.2f} ms", 1e3 * seconds)
                        : fmt::format("{:.3f} s", seconds);
}

void check_plan(const ScalingPlan& plan) {
  check_fabric(plan.fabric);
  const std::int64_t per_node = plan.fabric.gpus_per_node;
  if (plan.stride < 1 || (per_node % plan.stride != 0 && plan.stride % per_node != 0)) {
    throw ConfigError(fmt::format(
        "--stride {}: the ranks of a group are either within nodes of {} GPUs, so that the stride "
        "divides that number, or on different nodes, so that it is a multiple of it",
        plan.stride, per_node));
  }
  if (!(plan.bytes >= 0) || !(plan.bytes <= 1e15)) {
    throw ConfigError(fmt::format("{} bytes can't be the size of a buffer", plan.bytes));
  }
  if (plan.kind == CollectiveKind::all_to_all && plan.fabric.nodes > kMostPairwiseNodes) {
    throw ConfigError(
        fmt::format("an all_to_all is planned for at most {} nodes, but the fabric "
                    "has {}",
                    kMostPairwiseNodes, plan.fabric.nodes));
  }
}

}  // namespace

std::vector<ScalingPoint> collective_scaling(const ScalingPlan& plan) {
  check_plan(plan);
  const Fabric& fabric = plan.fabric;
  std::vector<ScalingPoint> points;
  const std::int64_t step = std::max(fabric.gpus_per_node, plan.stride);
  for (std::int64_t gpus = step; gpus <= fabric.gpus(); gpus *= 2) {
    const std::int64_t ranks = gpus / plan.stride;
    if (ranks < 2) {
      continue;
    }
    std::vector<GpuGroup> groups = gpu_groups(fabric, gpus, ranks, plan.stride);
    if (plan.is_scattered) {
      groups = scattered(fabric, std::move(groups), plan.seed);
    }
    ScalingPoint point{gpus, ranks, {}};
    for (const CollectiveAlgorithm algorithm : kAlgorithms) {
      if (const auto time = collective_time(fabric, groups, plan.kind, algorithm, plan.bytes)) {
        point.times.push_back(*time);
      }
    }
    points.push_back(std::move(point));
  }
  if (points.empty()) {
    throw ConfigError(fmt::format("a group with a stride of {} has no two ranks on {} GPUs",
                                  plan.stride, fabric.gpus()));
  }
  return points;
}

std::string to_text(const ScalingPlan& plan, const std::vector<ScalingPoint>& points) {
  std::string text = fmt::format(
      "{} of {} on {}, {} GPUs per node{}\n\n{:>7} {:>7} {:>13} {:>11} {:>10}  {}\n",
      kind_text(plan), format_bytes(static_cast<std::int64_t>(plan.bytes)),
      name_of(plan.fabric.kind), plan.fabric.gpus_per_node,
      plan.is_scattered ? fmt::format(", nodes in random order (seed {})", plan.seed) : "", "GPUs",
      "ranks", "algorithm", "time", "bus GB/s", "limited by");
  for (const ScalingPoint& point : points) {
    const auto best = std::min_element(
        point.times.begin(), point.times.end(),
        [](const CollectiveTime& a, const CollectiveTime& b) { return a.seconds < b.seconds; });
    for (auto time = point.times.begin(); time != point.times.end(); ++time) {
      const bool is_latency = 2 * time->latency > time->seconds;
      text += fmt::format("{:>7} {:>7} {:>12}{} {:>11} {:>10.1f}  {}\n", point.gpus, point.ranks,
                          name_of(time->algorithm), time == best ? "*" : " ",
                          time_text(time->seconds), bus_gb(plan, point, *time),
                          is_latency ? "latency" : name_of(time->bottleneck));
    }
  }
  return text + "\n* the fastest\n";
}

Json to_json(const ScalingPlan& plan, const std::vector<ScalingPoint>& points) {
  Json rows = Json::array();
  for (const ScalingPoint& point : points) {
    for (const CollectiveTime& time : point.times) {
      rows.push_back({{"gpus", point.gpus},
                      {"ranks", point.ranks},
                      {"algorithm", name_of(time.algorithm)},
                      {"seconds", time.seconds},
                      {"latency_seconds", time.latency},
                      {"bus_gb_per_s", bus_gb(plan, point, time)},
                      {"limited_by", name_of(time.bottleneck)}});
    }
  }
  return {{"schema", 1},
          {"operation", kind_text(plan)},
          {"bytes", plan.bytes},
          {"fabric", name_of(plan.fabric.kind)},
          {"nodes", plan.fabric.nodes},
          {"gpus_per_node", plan.fabric.gpus_per_node},
          {"stride", plan.stride},
          {"scattered", plan.is_scattered},
          {"points", rows}};
}

std::string to_svg(const ScalingPlan& plan, const std::vector<ScalingPoint>& points) {
  LinePlot plot;
  plot.title =
      fmt::format("{} of {}", kind_text(plan), format_bytes(static_cast<std::int64_t>(plan.bytes)));
  plot.x_label = "GPUs";
  plot.y_label = "bus bandwidth, GB/s";
  plot.log_x = true;
  for (const CollectiveAlgorithm algorithm : kAlgorithms) {
    PlotSeries series{std::string(name_of(algorithm)), {}, {}};
    for (const ScalingPoint& point : points) {
      for (const CollectiveTime& time : point.times) {
        if (time.algorithm == algorithm) {
          series.x.push_back(static_cast<double>(point.gpus));
          series.y.push_back(bus_gb(plan, point, time));
        }
      }
    }
    if (!series.x.empty()) {
      plot.series.push_back(std::move(series));
    }
  }
  return to_svg(plot);
}

}  // namespace trireme
