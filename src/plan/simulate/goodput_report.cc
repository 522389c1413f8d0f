#include "src/plan/simulate/goodput_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/units.h"
#include "src/figures/line_plot.h"
#include "src/plan/simulate/published_rates.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<double, 7> kQuantiles = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
constexpr double kMonthSeconds = 30 * 86400.0;

double percent(double fraction) { return 100 * fraction; }

std::string interval_text(const IntegerOrWord& setting, std::int64_t steps, const JobModel& model) {
  if (steps == 0) {
    return "never";
  }
  if (setting.is("auto") && std::isinf(model.mean_seconds_between_stops())) {
    return "not needed";
  }
  return fmt::format("every {} ({})", counted(steps, "step"),
                     format_seconds(static_cast<double>(steps) * model.step_seconds));
}

std::string rates_text(const JobModel::Rates& rates) {
  if (rates.source == "none") {
    return "only those given";
  }
  if (rates.source == "journal") {
    return "of the run";
  }
  const PublishedRates& published = published_rates_of(rates.source);
  const bool is_same = rates.process == published.process && rates.hang == published.hang &&
                       rates.node == published.node;
  return rates.source + (is_same ? "" : ", changed");
}

// What `auto` rests on.
std::string automatic_text(const JobModel& model) {
  const double between = model.mean_seconds_between_stops();
  if (!model.checkpoint.every.is("auto") || std::isinf(between)) {
    return "";
  }
  const bool is_stall = model.memory_interval() == 0;
  return fmt::format(
      "auto on disk: the interval of Daly if a save costs {} ({}), but not less than one takes\n",
      format_seconds(model.disk_save_cost()),
      is_stall ? "checkpoint.stall"
               : "checkpoint.disk_seconds, since there are saves in memory, too");
}

std::string job_text(const GoodputReport& report) {
  const JobModel& model = report.model;
  const double between = model.mean_seconds_between_stops();
  std::string text = fmt::format("{}, {}, {:.4g} days, a step takes {:.4g} s; {}, seed {}\n",
                                 counted(model.nodes, "node"), counted(model.spares, "spare"),
                                 model.days, model.step_seconds,
                                 counted(std::ssize(report.goodput.sorted), "draw"), report.seed);
  text += fmt::format("failure rates: {}; {}\n", rates_text(model.rates),
                      std::isinf(between) ? "nothing stops the job"
                                          : fmt::format("something stops the job every {}",
                                                        format_seconds(between)));
  text += fmt::format("saves in memory {}, on disk {}\n",
                      interval_text(model.checkpoint.memory_every, model.memory_interval(), model),
                      interval_text(model.checkpoint.every, model.disk_interval(), model));
  text += automatic_text(model);
  for (const std::string& note : report.notes) {
    text += note + "\n";
  }
  for (const std::string& warning : save_warnings(model)) {
    text += fmt::format("warning: {}\n", warning);
  }
  return text;
}

std::string distribution_text(const Goodput& goodput) {
  if (goodput.sorted.size() == 1) {
    return fmt::format("\ngoodput {:.2f} %\n", percent(goodput.mean));
  }
  std::string text = fmt::format("\ngoodput {:.2f} % on average\n", percent(goodput.mean));
  constexpr std::array<std::pair<const char*, double>, 5> kNamed = {{{"minimum", 0},
                                                                     {"10 % have less than", 0.1},
                                                                     {"median", 0.5},
                                                                     {"90 % have less than", 0.9},
                                                                     {"maximum", 1}}};
  for (const auto& [name, q] : kNamed) {
    text += fmt::format("{:>20} {:6.2f} %\n", name, percent(goodput.quantile(q)));
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
  const double ended =
      goodput.launches - goodput.from_memory - goodput.from_disk - goodput.from_nothing;
  return text + fmt::format(
                    " {:.1f} launches: {:.1f} from memory, {:.1f} from disk, {:.1f} from the "
                    "beginning, {:.1f} ended by the next fault before they trained; {:.1f} waits "
                    "for nodes\n",
                    goodput.launches, goodput.from_memory, goodput.from_disk, goodput.from_nothing,
                    std::abs(ended), goodput.waits);
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
          {"memory_seconds", model.checkpoint.memory_seconds},
          {"disk_seconds", model.checkpoint.disk_seconds},
          {"notes", report.notes},
          {"warnings", save_warnings(model)},
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
