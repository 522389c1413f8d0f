#include "src/report/plan_section.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/json_number.h"
#include "src/base/units.h"
#include "src/figures/bar_plot.h"
#include "src/figures/line_plot.h"
#include "src/report/line_figure.h"
#include "src/report/stacked_figure.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBars = 10;
constexpr double kGibibyte = 0x1p30;

std::string text_of(const Json& line) {
  return line.is_string() ? line.get<std::string>() : line.dump();
}

// Returns the figures of this object, a layout's "terms" or "memory", scaled. A part may be the sum
// of several fields.
std::vector<double> parts_of(const Json& object, const std::vector<std::vector<const char*>>& parts,
                             double scale) {
  std::vector<double> sums;
  for (const std::vector<const char*>& fields : parts) {
    double sum = 0;
    for (const char* name : fields) {
      sum += number_field(object, name);
    }
    sums.push_back(scale * sum);
  }
  return sums;
}

StackedBars bars_of(const Json& layouts, StackedBars bars, const char* object,
                    const std::vector<std::vector<const char*>>& parts, double scale) {
  for (std::size_t i = 0; i < std::min(kMostBars, layouts.size()); ++i) {
    bars.labels.push_back(text_field(layouts[i], "layout"));
    bars.values.push_back(parts_of(object_field(layouts[i], object), parts, scale));
  }
  return bars;
}

// Groups terms so that a stacked bar has no more colours than a reader tells apart.
DocFigure time_figure(const Json& layouts) {
  const StackedBars bars{"Time of a step, by layout",
                         "ms",
                         "layout",
                         {},
                         {"products", "head", "attention", "kernels", "recompute", "tensor",
                          "pipeline", "replicas", "optimizer", "other"},
                         {}};
  return stacked_figure(bars_of(layouts, bars, "terms",
                                {{"products"},
                                 {"head"},
                                 {"attention"},
                                 {"kernels", "accumulate"},
                                 {"recompute"},
                                 {"tensor"},
                                 {"transfer", "bubble"},
                                 {"gradients", "parameters"},
                                 {"optimizer"},
                                 {"checkpoint"}},
                                1e3));
}

DocFigure memory_figure(const Json& layouts) {
  const StackedBars bars{
      "Memory of the rank that needs most, by layout",
      "GiB",
      "layout",
      {},
      {"parameters", "gradients", "optimizer", "activations", "communication", "snapshot", "other"},
      {}};
  return stacked_figure(bars_of(layouts, bars, "memory",
                                {{"parameters"},
                                 {"gradients"},
                                 {"optimizer"},
                                 {"activations"},
                                 {"communication"},
                                 {"snapshot"},
                                 {"reserved"}},
                                1 / kGibibyte));
}

// The fastest layout on each number of nodes; those that another one beats in time, nodes and
// energy at once are not on the front. The layouts are sorted by time.
DocFigure front_figure(const Json& layouts) {
  std::map<std::int64_t, const Json*> fastest;
  for (const Json& layout : layouts) {
    fastest.emplace(count_field(layout, "nodes"), &layout);
  }
  LinePlot plot{"", "nodes", "days", {{"fastest layout", {}, {}}, {"on the front", {}, {}}}};
  plot.log_x = plot.log_y = true;
  DocFigure figure;
  figure.heading = "Time, nodes and energy of the whole run";
  figure.table = {"The fastest layout on each number of nodes",
                  {"nodes", "days", "MWh", "on the front", "layout"},
                  {}};
  for (const auto& [nodes, layout] : fastest) {
    const double days = number_field(*layout, "days");
    const bool on_front = flag_field(*layout, "on_front");
    for (const std::size_t series : {std::size_t{0}, std::size_t{1}}) {
      if ((series == 0 || on_front) && nodes > 0 && days > 0) {
        plot.series[series].x.push_back(static_cast<double>(nodes));
        plot.series[series].y.push_back(days);
      }
    }
    figure.table.rows.push_back({fmt::format("{}", nodes), number_text(days),
                                 number_text(number_field(*layout, "kilowatt_hours") / 1000),
                                 on_front ? "yes" : "no", text_field(*layout, "layout")});
  }
  figure.summary = "Days of the whole run over the number of nodes, with failures.";
  figure.svg = to_svg(plot);
  return figure;
}

BarPiece piece_of(const Json& step, const std::vector<std::string>& categories) {
  const std::string& kind = text_field(step, "kind");
  const auto found = std::find(categories.begin(), categories.end(), kind);
  if (found == categories.end()) {
    throw DataError(fmt::format("the timeline of a stage has a step of the unknown kind '{}'",
                                kind.substr(0, 40)));
  }
  const double from = 1e3 * number_field(step, "from");
  return {from, std::max(from, 1e3 * number_field(step, "to")),
          static_cast<std::size_t>(found - categories.begin()), text_field(step, "what")};
}

// When each stage computes what, and what follows the last backward.
DocFigure timeline_figure(const Json& timeline) {
  BarPlot plot{"ms", {"forward", "backward", "weight gradients", "replicas", "optimizer"}, {}};
  DocFigure figure;
  figure.heading = "Timeline of a step of the best layout";
  figure.table = {"Busy and idle time of each stage, in ms", {"stage", "busy", "idle"}, {}};
  for (const Json& stage : array_field(timeline, "stages")) {
    const std::string number = fmt::format("{}", plot.rows.size());
    BarRow row{"stage " + number, {}};
    for (const Json& step : array_field(stage, "steps")) {
      row.pieces.push_back(piece_of(step, plot.categories));
    }
    figure.table.rows.push_back({number, number_text(1e3 * number_field(stage, "busy_seconds")),
                                 number_text(1e3 * number_field(stage, "idle_seconds"))});
    plot.rows.push_back(std::move(row));
  }
  figure.summary = fmt::format(
      "What each stage of a pipeline computes when, for {} of {} micro-batches, and what follows.",
      count_field(timeline, "drawn_micro_batches"), count_field(timeline, "micro_batches"));
  figure.svg = to_svg(plot);
  return figure;
}

// quantiles: the goodput that this fraction of the simulations does not exceed, from 0 to 1 in
// equal steps.
DocFigure goodput_figure(const Json& goodput) {
  const Json& quantiles = array_field(goodput, "quantiles");
  LinePlot plot{"", "goodput, %", "simulations, %", {{"do not exceed it", {}, {}}}};
  DocFigure figure;
  figure.heading = "Goodput of the best layout";
  figure.table = {"Goodput", {"of the simulations", "do not exceed"}, {}};
  const auto last = static_cast<double>(std::max<std::size_t>(quantiles.size(), 2) - 1);
  double shown = 0;  // the share of the simulations for the next row of the table
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    if (!quantiles[i].is_number()) {
      throw DataError("a quantile of the goodput is no number");
    }
    const double share = 100 * static_cast<double>(i) / last;
    const double percent = 100 * quantiles[i].get<double>();
    plot.series.front().x.push_back(percent);
    plot.series.front().y.push_back(share);
    if (share >= shown) {
      figure.table.rows.push_back(
          {fmt::format("{:.0f} %", share), fmt::format("{:.2f} %", percent)});
      shown += 10;
    }
  }
  figure.summary =
      fmt::format("{} of {} days: the fraction of them that does not exceed each goodput.",
                  counted(count_field(goodput, "draws"), "simulation"),
                  number_text(number_field(goodput, "days")));
  figure.svg = to_svg(plot);
  return figure;
}

}  // namespace

bool looks_like_plan(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  const std::string_view head = text.substr(0, kHead);
  return head.find("\"schema\"") != std::string_view::npos &&
         head.find("\"tried\"") != std::string_view::npos &&
         head.find("\"residual_percent\"") != std::string_view::npos;
}

DocSection plan_section(std::string_view text, const std::string& name) {
  constexpr std::int64_t kSchema = 2;
  const Json document = parse_json(text);
  if (const std::int64_t schema = count_field(document, "schema"); schema != kSchema) {
    throw DataError(fmt::format(
        "its schema is version {}, and this program reads version {}: plan again, or use the "
        "program that wrote it",
        schema, kSchema));
  }
  const Json& layouts = array_field(document, "layouts");
  DocSection section;
  section.heading = fmt::format("Plan for {}: {}", text_field(document, "cluster"), name);
  section.paragraphs.push_back(fmt::format("{} tried, and {} fit.",
                                           counted(count_field(document, "tried"), "layout"),
                                           count_field(document, "fit")));
  if (layouts.empty()) {
    // Files from before this field existed have none.
    if (document.contains("advice")) {
      for (const Json& line : array_field(document, "advice")) {
        section.paragraphs.push_back("What would help: " + text_of(line));
      }
    }
    return section;
  }
  section.paragraphs.push_back(fmt::format(
      "The best layout is {}: {} s per step, with a typical error of {} %, {} days in all.",
      text_field(layouts.front(), "layout"),
      number_text(number_field(layouts.front(), "step_seconds")),
      number_text(number_field(document, "residual_percent")),
      number_text(number_field(layouts.front(), "days"))));
  for (const Json& warning : array_field(document, "warnings")) {
    section.remarks.push_back(text_of(warning));
  }
  section.figures = {time_figure(layouts), memory_figure(layouts), front_figure(layouts),
                     timeline_figure(object_field(document, "timeline"))};
  if (const Json& goodput = field(document, "goodput"); !goodput.is_null()) {
    section.figures.push_back(goodput_figure(goodput));
  }
  return section;
}

}  // namespace trireme
