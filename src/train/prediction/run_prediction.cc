#include "src/train/prediction/run_prediction.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/printable.h"
#include "src/base/replace_file.h"
#include "src/base/units.h"
#include "src/plan/calibration.h"
#include "src/plan/outlook.h"
#include "src/train/prediction/measured_run.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// The stall of a save by the formula of the planner, if the run saves every so many steps.
double predicted_stall(const Cluster& cluster, const RunConfig& config, const MeasuredStep& step) {
  const std::int64_t every = config.checkpoint.every.integer;
  if (every <= 0 || !config.checkpoint.every.word.empty()) {
    return 0;
  }
  const Outlook o = outlook(cluster, {.parameters = step.model.parameters(),
                                      .seconds = step.measured.total(),
                                      .steps = static_cast<double>(config.train.steps),
                                      .nodes = 1,
                                      .ranks = step.layout.ranks()});
  return o.stall_seconds / static_cast<double>(every);
}

std::string error_text(double predicted, double measured) {
  return measured > 0 && predicted > 0 ? fmt::format("{:+.1f} %", 100 * (predicted / measured - 1))
                                       : "-";
}

std::vector<std::string> table_of(const StepSplit& predicted, const StepSplit& measured,
                                  const PeakMemory& memory) {
  constexpr const char* kRow = "{:<12} {:>11} {:>11} {:>9}";
  std::vector<std::string> rows = {fmt::format(kRow, "part", "predicted", "measured", "error")};
  const auto add = [&](const char* name, double p, double m) {
    rows.push_back(fmt::format(kRow, name, fmt::format("{:.2f} ms", 1e3 * p),
                               fmt::format("{:.2f} ms", 1e3 * m), error_text(p, m)));
  };
  const auto p = predicted.parts();
  const auto m = measured.parts();
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0 || m[i] > 0) {
      add(StepSplit::names()[i], p[i], m[i]);
    }
  }
  add("step", predicted.total(), measured.total());
  if (memory.measured > 0) {
    rows.push_back(fmt::format(
        kRow, "memory", format_bytes(memory.predicted), format_bytes(memory.measured),
        error_text(static_cast<double>(memory.predicted), static_cast<double>(memory.measured))));
  }
  return rows;
}

}  // namespace

std::vector<std::string> doubts_about(const Cluster& cluster, int ranks, int ranks_per_host,
                                      const std::string& device_kind) {
  std::vector<std::string> doubts;
  if (cluster.device.kind != device_kind) {
    doubts.push_back(fmt::format("the cluster computes with a {} per rank, and the run with a {}",
                                 cluster.device.kind, device_kind));
  }
  if (ranks > cluster.devices()) {
    doubts.push_back(fmt::format("the cluster has {}, and the run {}",
                                 counted(cluster.devices(), "device"), counted(ranks, "rank")));
  }
  if (cluster.device.kind == "cpu" && ranks_per_host != cluster.device.per_node) {
    // A rank computes with its share of the cores, so another number of ranks has other rates.
    doubts.push_back(fmt::format("the rates are those of {} per node, and a host has {}",
                                 counted(cluster.device.per_node, "rank"),
                                 counted(ranks_per_host, "rank")));
  }
  return doubts;
}

RunPrediction::RunPrediction(const RunConfig& config, const Layout& layout,
                             const std::vector<RankPlace>& places, Communicator& world,
                             Device device)
    : config_(config), layout_(layout), places_(places), world_(world), device_(device) {
  if (config.plan_cluster.empty()) {
    return;
  }
  run_on_root(world, [&] {
    cluster_ = load_cluster(config.plan_cluster);
    return std::string();
  });
}

void RunPrediction::finish(const PeakMemory& memory, const Observe& observe, Log& log) {
  // All ranks have done as many steps.
  if ((config_.plan_cluster.empty() && !observe) || timings_.steps() == 0) {
    return;
  }
  const MeasuredStep step = measured_run(config_, layout_, timings_, memory.measured, world_);
  if (observe) {
    observe(step);
  }
  if (cluster_) {
    report(step, memory, log);
  }
}

void RunPrediction::report(const MeasuredStep& step, const PeakMemory& memory, Log& log) const {
  StepTime time = predicted_step(*cluster_, step);
  time.checkpoint = predicted_stall(*cluster_, config_, step);
  const StepSplit predicted = split_of(time);
  std::vector<std::string> doubts =
      doubts_about(*cluster_, world_.size(), places_.front().local_size,
                   device_.kind == DeviceKind::cuda ? "gpu" : "cpu");
  if (config_.model.has_frozen()) {
    doubts.emplace_back(
        fmt::format("the planner predicts steps that train all weights, and this run {}",
                    config_.model.lora.is_on() ? "adapters" : "a part of them"));
  }
  Json json = {{"schema", 1}, {"cluster", cluster_->name}};
  json["residual_percent"] = cluster_->residual_percent;
  json.update(to_json(step));
  json["predicted"] = to_json(predicted);
  Json terms = Json::object();
  const auto values = time.terms();
  for (std::size_t i = 0; i < values.size(); ++i) {
    terms[StepTime::names()[i]] = values[i];
  }
  json["predicted_terms"] = terms;
  json["predicted_memory_bytes"] = memory.predicted;
  json["doubts"] = doubts;
  log.table(
      fmt::format("predicted for '{}' against measured, per step ({} after the start, {}):",
                  printable(cluster_->name), counted(step.steps, "step"), layout_text(step.layout)),
      table_of(predicted, step.measured, memory));
  for (const std::string& doubt : doubts) {
    log.warning("the prediction does not fit this run: " + doubt);
  }
  log.event("prediction", json);
  replace_text_file(RunDirectory(config_.run_dir).prediction(), json.dump(2) + "\n");
}

}  // namespace trireme
