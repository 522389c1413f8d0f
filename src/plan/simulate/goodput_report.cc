#include "src/plan/simulate/goodput_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/units.h"
#include "src/figures/line_plot.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<double, 7> kQuantiles = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
constexpr double kMonthSeconds = 30 * 86400.0;

double percent(double fraction) { return 100 * fraction; }

std::string interval_text(std::int64_t steps, const JobModel& model) {
  return steps == 0 ? "never"
                    : fmt::format("every {} ({})", counted(steps, "step"),
                                  format_seconds(static_cast<double>(steps) * model.step_seconds));
}

std::string job_text(const GoodputReport& report) {
  const JobModel& model = report.model;
  const double between = model.mean_seconds_between_stops();
  std::string text = fmt::format("{}, {}, {:.4g} days, a step takes {:.4g} s; {}, seed {}\n",
                                 counted(model.nodes, "node"), counted(model.spares, "spare"),
                                 model.days, model.step_seconds,
                                 counted(std::ssize(report.goodput.sorted), "draw"), report.seed);
  text +=
      fmt::format("failure rates: {}; something stops the job {}\n", model.rates.source,
                  std::isinf(between) ? "never" : fmt::format("every {}", format_seconds(between)));
  text +=
      fmt::format("saves in memory {}, on disk {}\n", interval_text(model.memory_interval(), model),
                  interval_text(model.disk_interval(), model));
  return text;
}

std::string distribution_text(const Goodput& goodput) {
  std::string text =
      fmt::format("\ngoodput {:.2f} % on average; of the draws\n", percent(goodput.mean));
  for (const double q : kQuantiles) {
    text += fmt::format("{:>10.0f} % do not exceed {:6.2f} %\n", percent(q),
                        percent(goodput.quantile(q)));
  }
  return text;
}

std::string causes_text(const GoodputReport& report) {
  const Goodput& goodput = report.goodput;
  std::string text = fmt::format("\n{:<12} {:>8} {:>14}\n", "cause", "share", "hours/30 days");
  for (std::size_t i = 0; i < kSimulatedCauses; ++i) {
    text += fmt::format("{:<12} {:>7.2f}% {:>14.2f}\n", name_of(static_cast<SimulatedCause>(i)),
                        percent(goodput.shares[i]), goodput.shares[i] * kMonthSeconds / 3600);
  }
  text += "\nper draw:";
  for (std::size_t i = 0; i < kJobFaultKinds; ++i) {
    if (goodput.faults[i] > 0) {
      text += fmt::format(" {:.1f} {},", goodput.faults[i], name_of(static_cast<JobFaultKind>(i)));
    }
  }
  return text + fmt::format(
                    " {:.1f} launches: {:.1f} from memory, {:.1f} from disk, {:.1f} from the "
                    "beginning; {:.1f} waits for nodes\n",
                    goodput.launches, goodput.from_memory, goodput.from_disk, goodput.from_nothing,
                    goodput.waits);
}

std::string measures_text(const GoodputReport& report) {
  std::string text = "\nWhat one measure alone would buy, in points of goodput:\n";
  for (const Measure& measure : report.measures) {
    text += fmt::format("{:>+8.3f} +- {:.3f}  {}\n", percent(measure.gain), percent(measure.error),
                        measure.name);
  }
  return text;
}

Json times_json(const std::array<double, kSimulatedCauses>& values) {
  Json json;
  for (std::size_t i = 0; i < kSimulatedCauses; ++i) {
    json[std::string(name_of(static_cast<SimulatedCause>(i)))] = values[i];
  }
  return json;
}

}  // namespace

std::string to_text(const GoodputReport& report) {
  return job_text(report) + distribution_text(report.goodput) + causes_text(report) +
         (report.measures.empty() ? "" : measures_text(report));
}

Json to_json(const GoodputReport& report) {
  const JobModel& model = report.model;
  const Goodput& goodput = report.goodput;
  const double between = model.mean_seconds_between_stops();
  Json quantiles = Json::array();
  for (const double q : kQuantiles) {
    quantiles.push_back({{"fraction", q}, {"goodput", goodput.quantile(q)}});
  }
  Json faults;
  for (std::size_t i = 0; i < kJobFaultKinds; ++i) {
    faults[std::string(name_of(static_cast<JobFaultKind>(i)))] = goodput.faults[i];
  }
  Json measures = Json::array();
  for (const Measure& measure : report.measures) {
    measures.push_back({{"name", measure.name},
                        {"goodput", measure.goodput},
                        {"gain", measure.gain},
                        {"standard_error", measure.error}});
  }
  return {{"schema", 1},
          {"nodes", model.nodes},
          {"spares", model.spares},
          {"days", model.days},
          {"step_seconds", model.step_seconds},
          {"rates_source", model.rates.source},
          {"mean_seconds_between_stops", std::isinf(between) ? Json() : Json(between)},
          {"memory_every", model.memory_interval()},
          {"disk_every", model.disk_interval()},
          {"seed", report.seed},
          {"draws", goodput.sorted.size()},
          {"goodput", goodput.mean},
          {"quantiles", quantiles},
          {"shares", times_json(goodput.shares)},
          {"faults", faults},
          {"launches", goodput.launches},
          {"from_memory", goodput.from_memory},
          {"from_disk", goodput.from_disk},
          {"from_nothing", goodput.from_nothing},
          {"waits", goodput.waits},
          {"measures", measures}};
}

std::string to_svg(const GoodputReport& report) {
  const Goodput& goodput = report.goodput;
  LinePlot plot;
  plot.x_label = "goodput, %";
  plot.y_label = "share of draws that do not exceed it, %";
  PlotSeries series{"draws", {}, {}};
  for (std::size_t i = 0; i < goodput.sorted.size(); ++i) {
    series.x.push_back(percent(goodput.sorted[i]));
    series.y.push_back(
        percent(static_cast<double>(i + 1) / static_cast<double>(goodput.sorted.size())));
  }
  plot.series.push_back(std::move(series));
  plot.events.push_back({percent(goodput.mean), "mean"});
  return to_svg(plot);
}

std::string to_text(const RunJournal& journal, const SimulatedRun& replayed) {
  std::string text = fmt::format(
      "replay of {} with the times of this run on average:\n\n"
      "{:<12} {:>10} {:>10}\n{:<12} {:>10.1f} {:>10.1f}\n{:<12} {:>10.2f} {:>10.2f}\n",
      counted(std::ssize(journal.faults.faults), "fault"), "", "measured", "simulated", "seconds",
      journal.wall, replayed.wall, "goodput, %", percent(journal.goodput),
      percent(replayed.goodput()));
  const double error = journal.goodput > 0 ? replayed.goodput() / journal.goodput - 1 : 0;
  return text + fmt::format("{:<12} {:>10} {:>+9.2f} %\n", "error", "", percent(error));
}

Json to_json(const RunJournal& journal, const SimulatedRun& replayed) {
  return {{"schema", 1},
          {"faults", journal.faults.faults.size()},
          {"measured_seconds", journal.wall},
          {"measured_goodput", journal.goodput},
          {"simulated_seconds", replayed.wall},
          {"simulated_goodput", replayed.goodput()},
          {"simulated", times_json(replayed.seconds)}};
}

}  // namespace trireme
