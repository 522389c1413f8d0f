#include "src/app/study/scale_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/sampling.h"
#include "src/app/study/scale_check.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/study/comparison.h"
#include "src/trace/trace_summary.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// These conditions differ between numbers of nodes by design.
constexpr std::array<std::string_view, 3> kScaled = {"start.ranks", "layout.dp",
                                                     "train.global_batch"};

struct Part {
  const char* title;
  const char* name;  // in a sentence
  double StepLosses::*value;
};
constexpr std::array kParts = {Part{"compute", "computing", &StepLosses::compute},
                               Part{"comm", "exposed communication", &StepLosses::communication},
                               Part{"imbal.", "imbalance between ranks", &StepLosses::imbalance},
                               Part{"bubble", "the pipeline's bubble", &StepLosses::bubble},
                               Part{"input", "waiting for data", &StepLosses::input},
                               Part{"optim.", "the optimizer", &StepLosses::optimizer},
                               Part{"ckpt", "checkpoints", &StepLosses::checkpoint},
                               Part{"other", "other work", &StepLosses::other}};

void check_alike(const MeasuredResult& first, const MeasuredResult& run) {
  std::string text;
  for (const std::string& difference : differences(first, run)) {
    const bool by_design = std::any_of(kScaled.begin(), kScaled.end(), [&](std::string_view key) {
      return difference.starts_with(std::string(key) + ":");
    });
    text += by_design ? "" : "\n  " + difference;
  }
  if (!text.empty()) {
    throw ConfigError(
        fmt::format("{} and {} differ in more than the number of nodes:{}\nSuch runs say nothing "
                    "about scaling. If one of them was an exception, remove its folder, and the "
                    "same command repeats it{}",
                    first.origin, run.origin, text,
                    text.find("rank.threads:") == std::string::npos
                        ? ""
                        : ". If ranks share their cores with more ranks on more nodes, set "
                          "train.threads and begin a new study with --dir"));
  }
}

// Returns the step times that count.
std::vector<double> steps_of(const MeasuredResult& run) {
  std::vector<double> steps = run.rows.front().samples.front().values;  // without the first step
  const auto skipped =
      static_cast<std::ptrdiff_t>(std::min<std::size_t>(kScaleWarmup - 1, steps.size() - 1));
  steps.erase(steps.begin(), steps.begin() + skipped);
  return steps;
}

StepLosses losses_of(const std::filesystem::path& folder, const TextReader& reader) {
  const TraceSummary summary = summarize(read_traces(folder, reader));
  const StepTimes& mean = summary.mean;
  double slowest = 0;
  for (const RankSummary& rank : summary.ranks) {
    slowest = std::max(slowest, rank.mean[StepPart::compute]);
  }
  const double waiting = mean[StepPart::tp] + mean[StepPart::dp] + mean[StepPart::pp];
  const double imbalance = std::min(waiting, slowest - mean[StepPart::compute]);
  constexpr double kMilliseconds = 1e3;
  return {kMilliseconds * mean.step,
          kMilliseconds * mean[StepPart::compute],
          kMilliseconds * (waiting - imbalance),
          kMilliseconds * imbalance,
          kMilliseconds * mean[StepPart::bubble],
          kMilliseconds * mean[StepPart::data],
          kMilliseconds * mean[StepPart::optimizer],
          kMilliseconds * mean.checkpoint,
          kMilliseconds * (mean[StepPart::other] - mean.checkpoint)};
}

void add(const StepLosses& from, double weight, StepLosses& to) {
  to.step += weight * from.step;
  for (const Part& part : kParts) {
    to.*part.value += weight * from.*part.value;
  }
}

StepLosses mean_of(const std::vector<StepLosses>& all) {
  StepLosses mean;
  for (const StepLosses& each : all) {
    add(each, 1.0 / static_cast<double>(all.size()), mean);
  }
  return mean;
}

// Returns the part that costs most time beyond that of perfect scaling. `ideal` is how much of the
// time of the first point a part should take at the second one.
const Part& costliest_part(const StepLosses& from, const StepLosses& to, double ideal) {
  const auto cost = [&](const Part& part) { return to.*part.value - ideal * from.*part.value; };
  return *std::max_element(kParts.begin(), kParts.end(),
                           [&](const Part& a, const Part& b) { return cost(a) < cost(b); });
}

std::string knee_text(const ScaleReport& report, const ScaleOptions& options) {
  const Scaling& knee = report.scaling[report.knee];
  const double least = options.efficiency / 100;
  if (report.uncertain) {
    const Scaling& open = *report.uncertain;
    return fmt::format(
        "knee: not certain: {} have an efficiency of {:.2f} ({:.2f} to {:.2f}),\n"
        "# which may be above or below {:.2f}: give more --repeat or --steps",
        counted(open.nodes, "node"), open.efficiency.estimate, open.efficiency.low,
        open.efficiency.high, least);
  }
  std::string text = fmt::format("knee: {}, efficiency {:.2f}", counted(knee.nodes, "node"),
                                 knee.efficiency.estimate);
  if (report.knee + 1 == report.scaling.size()) {
    return text + fmt::format("; all measured numbers of nodes reach {:.2f}", least);
  }
  const Scaling& next = report.scaling[report.knee + 1];
  const double ideal = options.weak ? 1 : static_cast<double>(knee.nodes) / next.nodes;
  const Part& part =
      costliest_part(report.losses[report.knee], report.losses[report.knee + 1], ideal);
  return text + fmt::format("; {} have {:.2f}, below {:.2f}.\n# What costs most there: {}",
                            counted(next.nodes, "node"), next.efficiency.estimate, least,
                            part.name);
}

std::string residuals_text(const ScalingFit& fit) {
  std::vector<std::string> texts;
  for (const double residual : fit.residuals) {
    texts.push_back(fmt::format("{:+.2f}", residual));
  }
  return fmt::format("{} (rms {:.2g})", fmt::join(texts, " "), fit.rms_residual);
}

// Returns what the fitted law, n / (1 + a (n - 1) + b n (n - 1)), says about many nodes.
std::string usl_text(const ScalingFit& fit) {
  if (fit.peak_nodes) {
    return fmt::format("USL: most throughput on {:.0f} nodes", *fit.peak_nodes);
  }
  if (fit.contention >= 1) {
    return "USL: more nodes bring no more throughput";
  }
  return fit.contention > 0
             ? fmt::format("USL: throughput approaches {:.3g} times that of the fewest nodes",
                           1 / fit.contention)
             : "USL: throughput grows in proportion to the nodes";
}

void print_fits(const ScaleReport& report, bool weak) {
  if (const auto fit = fit_serial_fraction(report.scaling, weak)) {
    fmt::print("# {}: serial fraction {:.3g}; residuals {}\n", weak ? "Gustafson" : "Amdahl",
               fit->serial, residuals_text(*fit));
  }
  if (const auto fit = fit_usl(report.scaling)) {
    fmt::print("# USL: contention {:.3g}, coherency {:.3g}; residuals {}\n", fit->contention,
               fit->coherency, residuals_text(*fit));
    fmt::print("# {}\n", usl_text(*fit));
  }
}

Json to_json(const StepLosses& losses) {
  return {{"trace_step_ms", losses.step},
          {"compute_ms", losses.compute},
          {"communication_ms", losses.communication},
          {"imbalance_ms", losses.imbalance},
          {"bubble_ms", losses.bubble},
          {"input_ms", losses.input},
          {"optimizer_ms", losses.optimizer},
          {"checkpoint_ms", losses.checkpoint},
          {"other_ms", losses.other}};
}

std::vector<double> all_steps(const ScalePoint& point) {
  std::vector<double> all;
  for (const std::vector<double>& steps : point.step_ms) {
    all.insert(all.end(), steps.begin(), steps.end());
  }
  return all;
}

Json measurement_of(std::int64_t steps) {
  return to_json(HowMeasured{kScaleWarmup, StopRule::count_or_duration(steps, 0),
                             "one step of training, as rank 0 logs it",
                             "the reduction of the gradients in each step"});
}

Json fit_json(const char* law, const std::optional<ScalingFit>& fit, const ScaleStudy& study) {
  const bool usl = std::string_view(law) == "usl";
  return {{"name", "scale_fit"},
          {"params", {{"law", law}, {"scaling", study.options().weak ? "weak" : "strong"}}},
          {"metrics",
           {{"serial_fraction", usl ? Json(nullptr) : Json(fit->serial)},
            {"contention", usl ? Json(fit->contention) : Json(nullptr)},
            {"coherency", usl ? Json(fit->coherency) : Json(nullptr)},
            {"peak_nodes", fit->peak_nodes ? Json(*fit->peak_nodes) : Json(nullptr)},
            {"residuals", fit->residuals},
            {"rms_residual", fit->rms_residual}}},
          {"measurement", measurement_of(study.options().steps)},
          {"samples", Json::object()}};
}

Json point_json(const ScaleReport& report, std::size_t at, const ScaleStudy& study) {
  const ScaleOptions& options = study.options();
  const Scaling& scaling = report.scaling[at];
  const std::vector<double> steps = all_steps(report.points[at]);
  Json metrics = {{"step_ms", scaling.step_ms},
                  {"speedup", scaling.speedup},
                  {"efficiency", scaling.efficiency.estimate},
                  {"efficiency_low", scaling.efficiency.low},
                  {"efficiency_high", scaling.efficiency.high},
                  {"knee", !report.uncertain && report.knee == at}};
  metrics.update(to_json(report.losses[at]));
  return {{"name", "scale"},
          {"params",
           {{"scaling", options.weak ? "weak" : "strong"},
            {"config", options.config},
            {"nodes", scaling.nodes},
            {"ranks_per_node", options.ranks_per_node},
            {"ranks", scaling.nodes * options.ranks_per_node},
            {"global_batch", study.global_batch(scaling.nodes)},
            {"launcher", options.cluster.empty() ? "mpirun" : "slurm"},
            {"repetitions", report.points[at].step_ms.size()},
            {"steps", options.steps}}},
          {"metrics", metrics},
          {"measurement", measurement_of(static_cast<std::int64_t>(steps.size()))},
          {"samples", {{"step_ms", samples_json(steps)}}}};
}

}  // namespace

ScaleReport make_scale_report(const ScaleStudy& study) {
  ScaleReport report;
  std::optional<MeasuredResult> first;
  const KeyedTextReader reader = study.options().keys.reader();
  for (const int nodes : study.options().nodes) {
    ScalePoint point{nodes, {}};
    std::vector<StepLosses> losses;
    for (const ScaleRun& run : study.runs()) {
      if (run.nodes != nodes || !run.done()) {
        continue;
      }
      const MeasuredResult result = read_scale_run(study, run, reader);
      warn_of_damaged_lines(result);
      check_alike(first ? *first : result, result);
      first = first ? first : result;
      point.step_ms.push_back(steps_of(result));
      losses.push_back(with_advice(run, [&] { return losses_of(run.folder, reader); }));
    }
    if (!point.step_ms.empty()) {
      report.points.push_back(std::move(point));
      report.losses.push_back(mean_of(losses));
    }
  }
  if (report.points.empty() || report.points.front().nodes != study.options().nodes.front()) {
    throw NotFound(fmt::format("{} has no finished run on {} nodes, the base of all comparisons",
                               study.options().folder, study.options().nodes.front()));
  }
  report.scaling = scaling_of(report.points, study.options().weak);
  const double least = study.options().efficiency / 100;
  report.knee = knee_of(report.scaling, least);
  if (const Scaling* const found = first_uncertain(report.scaling, report.knee, least)) {
    report.uncertain = *found;
  }
  return report;
}

void print_scale_report(const ScaleReport& report, const ScaleStudy& study) {
  const ScaleOptions& options = study.options();
  fmt::print("# {} scaling of {}, {} per node, global batch {}{}\n",
             options.weak ? "weak" : "strong", printable(study.model()),
             counted(options.ranks_per_node, "rank"), study.global_batch(options.nodes.front()),
             options.weak ? " on the fewest nodes" : "");
  fmt::print("# nodes  ranks  runs    step ms  speedup  efficiency, 95 % interval\n");
  for (std::size_t i = 0; i < report.scaling.size(); ++i) {
    const Scaling& point = report.scaling[i];
    fmt::print("{:>7}{:>7}{:>6}{:>11.4g}{:>9.3f}  {:.3f} ({:.3f} to {:.3f})\n", point.nodes,
               point.nodes * options.ranks_per_node, report.points[i].step_ms.size(), point.step_ms,
               point.speedup, point.efficiency.estimate, point.efficiency.low,
               point.efficiency.high);
  }
  fmt::print("# where a traced step spends its time, ms\n# nodes    step");
  for (const Part& part : kParts) {
    fmt::print("{:>8}", part.title);
  }
  fmt::print("\n");
  for (std::size_t i = 0; i < report.scaling.size(); ++i) {
    fmt::print("{:>7}{:>8.4g}", report.scaling[i].nodes, report.losses[i].step);
    for (const Part& part : kParts) {
      fmt::print(" {:>7.3g}", report.losses[i].*part.value);
    }
    fmt::print("\n");
  }
  print_fits(report, options.weak);
  fmt::print("# {}\n", knee_text(report, options));
}

Json scale_results(const ScaleReport& report, const ScaleStudy& study) {
  Json results = Json::array();
  for (std::size_t i = 0; i < report.scaling.size(); ++i) {
    results.push_back(point_json(report, i, study));
  }
  if (const auto fit = fit_serial_fraction(report.scaling, study.options().weak)) {
    results.push_back(fit_json(study.options().weak ? "gustafson" : "amdahl", fit, study));
  }
  if (const auto fit = fit_usl(report.scaling)) {
    results.push_back(fit_json("usl", fit, study));
  }
  return results;
}

}  // namespace trireme
