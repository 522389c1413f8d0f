#include "src/report/line_figure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/report/downsample.h"

namespace trireme {
namespace {

constexpr std::size_t kMostPoints = 2500;  // of a line; a page then stays far below 3 MB
constexpr std::size_t kTableRows = 12;

PlotSeries series_of(const MetricLine& line, const std::vector<double>& step) {
  PlotSeries series{line.name, {}, {}};
  for (const std::size_t i : downsample(step, line.values, kMostPoints)) {
    if (!line.is_sparse || std::isfinite(line.values[i])) {
      series.x.push_back(step[i]);
      series.y.push_back(line.factor * line.values[i]);
    }
  }
  return series;
}

// Returns the points of the figure for the script that zooms, with as many digits as a screen
// shows.
std::string plot_data(const LinePlot& plot) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const PlotSeries& series : plot.series) {
    nlohmann::ordered_json x = nlohmann::ordered_json::array();
    nlohmann::ordered_json y = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      x.push_back(static_cast<std::int64_t>(series.x[i]));
      if (std::isfinite(series.y[i])) {
        y.push_back(std::strtod(fmt::format("{:.6g}", series.y[i]).c_str(), nullptr));
      } else {
        y.push_back(nullptr);
      }
    }
    all.push_back({{"name", series.name}, {"x", std::move(x)}, {"y", std::move(y)}});
  }
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

struct Extremes {
  double low = std::nan("");
  double high = std::nan("");
};

Extremes extremes_of(const MetricLine& line) {
  Extremes found;
  for (const double each : line.values) {
    const double value = line.factor * each;
    if (std::isfinite(value)) {
      found.low = std::isfinite(found.low) ? std::min(found.low, value) : value;
      found.high = std::isfinite(found.high) ? std::max(found.high, value) : value;
    }
  }
  return found;
}

DocTable table_of(const LineFigure& what, const std::vector<const MetricLine*>& lines,
                  const std::vector<double>& step) {
  DocTable table;
  table.caption = fmt::format("{}, in {}", what.heading, what.y_label);
  table.head = {"step"};
  for (const MetricLine* const line : lines) {
    table.head.push_back(line->name);
  }
  const std::size_t rows = std::min(kTableRows, step.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t i = rows == 1 ? 0 : row * (step.size() - 1) / (rows - 1);
    std::vector<std::string> cells = {fmt::format("{:.0f}", step[i])};
    for (const MetricLine* const line : lines) {
      cells.push_back(number_text(line->factor * line->values[i]));
    }
    table.rows.push_back(std::move(cells));
  }
  std::vector<std::string> least = {"least"};
  std::vector<std::string> largest = {"largest"};
  for (const MetricLine* const line : lines) {
    const Extremes extremes = extremes_of(*line);
    least.push_back(number_text(extremes.low));
    largest.push_back(number_text(extremes.high));
  }
  table.rows.push_back(std::move(least));
  table.rows.push_back(std::move(largest));
  return table;
}

std::string summary_of(const LineFigure& what, const std::vector<const MetricLine*>& lines,
                       const std::vector<double>& step) {
  std::string text;
  for (const MetricLine* const line : lines) {
    const auto last = std::find_if(line->values.rbegin(), line->values.rend(),
                                   [](double each) { return std::isfinite(each); });
    const Extremes extremes = extremes_of(*line);
    text +=
        fmt::format("{}{}: from {} to {}, at last {}", text.empty() ? "" : "; ", line->name,
                    number_text(extremes.low), number_text(extremes.high),
                    number_text(last == line->values.rend() ? std::nan("") : line->factor * *last));
  }
  return fmt::format("{} over steps {:.0f} to {:.0f}, in {}. {}.{}", what.heading, step.front(),
                     step.back(), what.y_label, text,
                     what.events.empty() ? "" : " Dotted vertical lines mark restarts.");
}

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) {
    return "-";
  }
  const double size = std::abs(value);
  constexpr double kWhole = 1e5;
  constexpr double kLargest = 1e15;
  return size >= kWhole && size < kLargest ? fmt::format("{:.0f}", value)
                                           : fmt::format("{:.5g}", value);
}

DocFigure line_figure(const LineFigure& what, const std::vector<double>& step) {
  LinePlot plot{"", "step", what.y_label, {}, what.events};
  std::vector<const MetricLine*> lines;
  for (const MetricLine& line : what.lines) {
    PlotSeries series = series_of(line, step);
    if (!series.x.empty()) {
      plot.series.push_back(std::move(series));
      lines.push_back(&line);
    }
  }
  DocFigure figure;
  figure.heading = what.heading;
  if (lines.empty() || step.empty()) {
    return figure;
  }
  figure.summary = summary_of(what, lines, step);
  figure.svg = to_svg(plot);
  figure.data = plot_data(plot);
  figure.table = table_of(what, lines, step);
  return figure;
}

}  // namespace trireme
