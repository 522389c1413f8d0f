// The part of a run's section that compares its steps with what the planner predicted.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/report/line_figure.h"
#include "src/report/run_section.h"
#include "src/report/stacked_figure.h"

namespace trireme {
namespace {

constexpr std::size_t kMostParts = 11;  // of a stacked bar

std::string error_of(double predicted, double measured) {
  const double error = 100 * (predicted / measured - 1);
  const bool is_known = predicted > 0 && measured > 0 && std::abs(error) < 1e6;
  return is_known ? fmt::format("{:+.1f} %", error) : "-";
}

std::string bytes_text(double bytes) {
  constexpr double kMost = 0x1p60;
  return bytes > 0 && bytes < kMost ? format_bytes(std::llround(bytes)) : "-";
}

}  // namespace

DocSection forecast_part(const RunFolder& run) {
  const RunForecast& forecast = *run.forecast;
  const auto ms = [](std::vector<double> seconds) {
    for (double& each : seconds) {
      each *= 1e3;
    }
    return seconds;
  };
  const std::vector<double> predicted = ms(forecast.predicted);
  const std::vector<double> measured = ms(forecast.measured);
  DocTable table{
      "Predicted and measured time of a step by part, and memory of the rank that has "
      "most",
      {"part", "predicted", "measured", "error of the prediction"},
      {}};
  const auto add = [&](const std::string& part, double p, double m) {
    table.rows.push_back({part, fmt::format("{} ms", number_text(p)),
                          fmt::format("{} ms", number_text(m)), error_of(p, m)});
  };
  for (std::size_t i = 0; i < forecast.parts.size(); ++i) {
    add(forecast.parts[i], predicted[i], measured[i]);
  }
  add("step", std::accumulate(predicted.begin(), predicted.end(), 0.0),
      std::accumulate(measured.begin(), measured.end(), 0.0));
  table.rows.push_back({"memory", bytes_text(forecast.predicted_memory),
                        bytes_text(forecast.measured_memory),
                        error_of(forecast.predicted_memory, forecast.measured_memory)});
  DocSection section;
  section.heading = "Prediction";
  section.paragraphs.push_back(fmt::format(
      "The cluster file of '{}' states a typical error of {} %. Waits for data are not predicted.",
      forecast.cluster, number_text(forecast.residual_percent)));
  for (const std::string& doubt : forecast.doubts) {
    section.remarks.push_back("The prediction may not fit this run: " + doubt + ".");
  }
  if (forecast.parts.size() <= kMostParts) {
    section.figures.push_back(stacked_figure({"Time of a step, predicted and measured",
                                              "ms",
                                              "bar",
                                              {"predicted", "measured"},
                                              forecast.parts,
                                              {predicted, measured}}));
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace trireme
