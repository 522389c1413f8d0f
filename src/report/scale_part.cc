#include "src/report/scale_part.h"

#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/figures/line_plot.h"
#include "src/report/line_figure.h"
#include "src/report/stacked_figure.h"

namespace trireme {
namespace {

struct ScalePoint {
  double nodes = 0;
  double speedup = 0;
  double efficiency = 0;  // fraction; the ideal speedup is speedup / efficiency
  double low = 0;
  double high = 0;
  bool is_knee = false;
  std::vector<double> parts;  // ms, as kScaleParts
};

constexpr std::array<const char*, 8> kScaleParts = {
    "compute", "communication", "imbalance", "bubble", "input", "optimizer", "checkpoint", "other"};

double value_of(const nlohmann::json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Returns the usable points by study ("strong" or "weak"), in the order of their nodes.
std::map<std::string, std::map<double, ScalePoint>> points_of(
    const std::vector<const nlohmann::json*>& results) {
  std::map<std::string, std::map<double, ScalePoint>> studies;
  for (const nlohmann::json* const result : results) {
    const nlohmann::json& params = result->at("params");
    const nlohmann::json& metrics = result->at("metrics");
    ScalePoint point{.nodes = value_of(params, "nodes"),
                     .speedup = value_of(metrics, "speedup"),
                     .efficiency = value_of(metrics, "efficiency"),
                     .low = value_of(metrics, "efficiency_low"),
                     .high = value_of(metrics, "efficiency_high"),
                     .is_knee = metrics.value("knee", nlohmann::json()) == true,
                     .parts = {}};
    for (const char* const part : kScaleParts) {
      point.parts.push_back(value_of(metrics, std::string(part) + "_ms"));
    }
    const nlohmann::json kind = params.value("scaling", nlohmann::json());
    if (point.nodes > 0 && point.speedup > 0 && point.efficiency > 0) {
      studies[kind.is_string() ? kind.get<std::string>() : "unknown"].emplace(point.nodes, point);
    }
  }
  return studies;
}

// Returns a sentence about the last number of nodes that is efficient enough, or "" if the results
// name none.
std::string knee_words(const std::map<double, ScalePoint>& points) {
  for (auto knee = points.begin(); knee != points.end(); ++knee) {
    if (knee->second.is_knee) {
      const auto next = std::next(knee);
      const std::string efficiency = number_text(knee->second.efficiency);
      return next == points.end()
                 ? fmt::format(
                       " The knee was not reached: {:.0f} nodes, the most that were measured, "
                       "have an efficiency of {}.",
                       knee->first, efficiency)
                 : fmt::format(
                       " The knee is at {:.0f} {}, with an efficiency of {}: {:.0f} nodes "
                       "have {}.",
                       knee->first, knee->first == 1 ? "node" : "nodes", efficiency, next->first,
                       number_text(next->second.efficiency));
    }
  }
  return "";
}

void add_speedup(DocSection& section, const std::string& study,
                 const std::map<double, ScalePoint>& points) {
  PlotSeries measured{"measured", {}, {}};
  PlotSeries ideal{"ideal", {}, {}, {}, {}, true};
  DocTable table{fmt::format("Scaling of the {} study", study),
                 {"nodes", "speedup", "ideal", "efficiency", "low", "high", "knee"},
                 {}};
  std::vector<PlotMark> knees;
  for (const auto& [nodes, point] : points) {
    const double perfect = point.speedup / point.efficiency;
    measured.x.push_back(nodes);
    measured.y.push_back(point.speedup);
    measured.low.push_back(point.low * perfect);
    measured.high.push_back(point.high * perfect);
    ideal.x.push_back(nodes);
    ideal.y.push_back(perfect);
    if (point.is_knee) {
      knees.push_back({nodes, "knee"});
    }
    table.rows.push_back({number_text(nodes), number_text(point.speedup), number_text(perfect),
                          number_text(point.efficiency), number_text(point.low),
                          number_text(point.high), point.is_knee ? "yes" : "no"});
  }
  const LinePlot plot{"", "nodes", "speedup", {measured, ideal}, knees, {}, true, true};
  section.figures.push_back(
      {fmt::format("Speedup, {} scaling", study),
       fmt::format("Speedup over {:.0f} to {:.0f} nodes, both logarithmic: {} at last, {} of the "
                   "ideal.{} Dashed: perfect scaling; bars: intervals of the efficiency.",
                   measured.x.front(), measured.x.back(), number_text(measured.y.back()),
                   number_text(points.rbegin()->second.efficiency), knee_words(points)),
       to_svg(plot), "", std::move(table)});
}

}  // namespace

void add_scale_figures(DocSection& section, const std::vector<const nlohmann::json*>& results) {
  for (const auto& [study, points] : points_of(results)) {
    add_speedup(section, study, points);
    StackedBars bars{fmt::format("Where the time of a step goes, {} scaling", study),
                     "ms",
                     "node count",
                     {},
                     {kScaleParts.begin(), kScaleParts.end()},
                     {}};
    bool has_trace = false;
    for (const auto& [nodes, point] : points) {
      bars.labels.push_back(fmt::format("{:.0f}", nodes));
      bars.values.push_back(point.parts);
      has_trace = has_trace || std::isfinite(point.parts.front());
    }
    if (has_trace) {
      section.figures.push_back(stacked_figure(bars));
    }
  }
}

}  // namespace trireme
