#include "src/report/bench_section.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/json_number.h"
#include "src/base/units.h"
#include "src/figures/heat_map.h"
#include "src/report/line_figure.h"
#include "src/report/result_table.h"
#include "src/report/run_section.h"
#include "src/report/scale_part.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostResults = 10'000;
constexpr std::size_t kMostMembers = 256;  // of a heat map
constexpr std::size_t kMostCurves = 6;

double number_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string joined_params(const Json& params, const std::set<std::string>& without) {
  std::string text;
  for (const char* const key :
       {"op", "kernel", "model", "precision", "dtype", "backend", "layer"}) {
    if (params.contains(key) && !without.contains(key)) {
      text += (text.empty() ? "" : " ") + cell_text(params.at(key));
    }
  }
  return text.empty() ? "all" : text;
}

struct Curve {
  const char* x;    // a parameter
  const char* y;    // a metric
  const char* low;  // metrics of the interval's bounds; may be absent
  const char* high;
  const char* heading;
  const char* x_label;
  const char* y_label;
};

// Returns one line for each set of the other parameters, sorted by x.
std::vector<PlotSeries> curves_of(const Results& results, const Curve& curve) {
  std::map<std::string, std::map<double, const Json*>> lines;
  for (const Json* const each : results) {
    const double x = number_in(each->at("params"), curve.x);
    const double y = number_in(each->at("metrics"), curve.y);
    if (x > 0 && std::isfinite(y)) {
      lines[joined_params(each->at("params"), {curve.x})].emplace(x, &each->at("metrics"));
    }
  }
  std::vector<PlotSeries> all;
  for (const auto& [name, points] : lines) {
    PlotSeries series{name, {}, {}};
    for (const auto& [x, metrics] : points) {
      series.x.push_back(x);
      series.y.push_back(number_in(*metrics, curve.y));
      series.low.push_back(number_in(*metrics, curve.low));
      series.high.push_back(number_in(*metrics, curve.high));
    }
    if (series.x.size() > 1 && all.size() < kMostCurves) {
      all.push_back(std::move(series));
    }
  }
  return all;
}

DocTable curve_table(const std::vector<PlotSeries>& lines, const Curve& curve) {
  DocTable table{fmt::format("{}, in {}", curve.heading, curve.y_label),
                 {"line", curve.x_label, curve.y_label, "low", "high"},
                 {}};
  for (const PlotSeries& line : lines) {
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      table.rows.push_back({line.name, number_text(line.x[i]), number_text(line.y[i]),
                            number_text(line.low[i]), number_text(line.high[i])});
    }
  }
  return table;
}

void add_curves(DocSection& section, const Results& results, const Curve& curve) {
  LinePlot plot{"", curve.x_label, curve.y_label, curves_of(results, curve), {}, {}, true};
  if (plot.series.empty()) {
    return;
  }
  std::string names;
  for (const PlotSeries& series : plot.series) {
    const auto best = std::max_element(series.y.begin(), series.y.end());
    names +=
        fmt::format("{}{}: at most {}", names.empty() ? "" : "; ", series.name, number_text(*best));
  }
  section.figures.push_back({curve.heading,
                             fmt::format("{} over {} (logarithmic), in {}. {}.", curve.heading,
                                         curve.x_label, curve.y_label, names),
                             to_svg(plot), "", curve_table(plot.series, curve)});
}

// Adds throughput over the number of ranks, with the line of a perfect scaling and with the
// intervals of the samples.
void add_scaling(DocSection& section, const Results& results) {
  LinePlot plot{"", "ranks", "tokens/s", {}, {}, {}, true, true};
  DocTable table{"Scaling over ranks, against the smallest number of ranks",
                 {"what", "ranks", "tokens/s", "low", "high", "efficiency"},
                 {}};
  std::map<std::string, std::map<double, const Json*>> lines;
  for (const Json* const each : results) {
    const double ranks = number_in(each->at("params"), "ranks");
    if (ranks > 0 && number_in(each->at("metrics"), "tokens_per_s") > 0) {
      lines[joined_params(each->at("params"), {})].emplace(ranks, each);
    }
  }
  for (const auto& [name, points] : lines) {
    if (points.size() < 2 || plot.series.size() + 2 > kMostCurves) {
      continue;
    }
    PlotSeries series{name, {}, {}};
    PlotSeries ideal{name + " ideal", {}, {}, {}, {}, true};
    const double first_rate = number_in(points.begin()->second->at("metrics"), "tokens_per_s");
    for (const auto& [ranks, result] : points) {
      const double rate = number_in(result->at("metrics"), "tokens_per_s");
      const Json samples = result->value("samples", Json::object());
      const Json ms =
          samples.is_object() ? samples.value("step_ms", Json::object()) : Json::object();
      const double median = ms.is_object() ? number_in(ms, "median") : std::nan("");
      const auto bound = [&](const char* key) {
        return ms.is_object() && median > 0 && number_in(ms, key) > 0
                   ? rate * median / number_in(ms, key)
                   : std::nan("");
      };
      const double perfect = first_rate * ranks / points.begin()->first;
      series.x.push_back(ranks);
      series.y.push_back(rate);
      series.low.push_back(bound("high"));  // the longest time is the lowest rate
      series.high.push_back(bound("low"));
      ideal.x.push_back(ranks);
      ideal.y.push_back(perfect);
      table.rows.push_back({name, number_text(ranks), number_text(rate),
                            number_text(series.low.back()), number_text(series.high.back()),
                            fmt::format("{:.1f} %", 100 * rate / perfect)});
    }
    plot.series.push_back(std::move(series));
    plot.series.push_back(std::move(ideal));
  }
  if (!plot.series.empty()) {
    section.figures.push_back(
        {"Scaling",
         "Throughput over the number of ranks, both logarithmic. Dashed: perfect scaling "
         "from the smallest number of ranks; bars: 95 % intervals of the median.",
         to_svg(plot), "", table});
  }
}

// Returns a matrix of n rows of n numbers, row by row; NaN for null.
std::vector<double> matrix_in(const Json& matrices, const char* name, std::size_t n) {
  std::vector<double> values;
  for (const Json& row : array_field(matrices, name)) {
    for (const Json& each : row) {
      values.push_back(each.is_number() ? each.get<double>() : std::nan(""));
    }
  }
  if (values.size() != n * n) {
    throw DataError(
        fmt::format("field '{}' has {} numbers for {} members", name, values.size(), n));
  }
  return values;
}

void add_pairs(DocSection& section, const Json& result) {
  const Json& matrices = object_field(result, "matrices");
  std::vector<std::string> labels;
  const Json& members = array_field(matrices, "members");
  const Json& hosts = array_field(matrices, "hosts");
  if (members.size() > kMostMembers) {
    section.remarks.push_back(
        fmt::format("No heat map: {} members are more than {}.", members.size(), kMostMembers));
    return;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    labels.push_back(
        fmt::format("{} {}", cell_text(members[i]), i < hosts.size() ? cell_text(hosts[i]) : ""));
  }
  for (const auto& [name, heading, unit] :
       {std::tuple("bandwidth_GBps", "Bandwidth between pairs", "GB/s"),
        std::tuple("latency_us", "Latency between pairs", "us")}) {
    const std::vector<double> values = matrix_in(matrices, name, labels.size());
    DocTable table{
        fmt::format("{}, in {}; rows send to columns", heading, unit), {"from \\ to"}, {}};
    table.head.insert(table.head.end(), labels.begin(), labels.end());
    for (std::size_t row = 0; row < labels.size() && labels.size() <= 64; ++row) {
      std::vector<std::string> cells = {labels[row]};
      for (std::size_t column = 0; column < labels.size(); ++column) {
        cells.push_back(number_text(values[row * labels.size() + column]));
      }
      table.rows.push_back(std::move(cells));
    }
    section.figures.push_back({heading,
                               fmt::format("{}, in {}, as a heat map of {}: darker is larger.",
                                           heading, unit, counted(std::ssize(labels), "member")),
                               to_svg(HeatMap{"", unit, labels, values}), "", std::move(table)});
  }
}

void add_results(DocSection& section, const std::string& name, const Results& results) {
  DocSection part;
  part.heading = "Results: " + name;
  if (const std::string equal = equal_params(results); !equal.empty()) {
    part.paragraphs.push_back("In all rows: " + equal + ".");
  }
  if (name == "coll") {
    add_curves(part, results,
               {"bytes", "busbw_GBps", "none", "none", "Bus bandwidth", "bytes", "GB/s"});
    add_curves(
        part, results,
        {"bytes", "time_us", "time_us_low", "time_us_high", "Time of a collective", "bytes", "us"});
  } else if (name == "p2p_bw") {
    add_curves(part, results,
               {"bytes", "median_GBps", "median_GBps_low", "median_GBps_high",
                "Bandwidth between two ranks", "bytes", "GB/s"});
  } else if (name == "p2p_latency") {
    add_curves(part, results,
               {"bytes", "latency_us", "latency_us_low", "latency_us_high",
                "Latency between two ranks", "bytes", "us"});
  } else if (name == "step") {
    add_scaling(part, results);
  } else if (name == "scale") {
    add_scale_figures(part, results);
  } else if (name == "pairs") {
    for (const Json* const each : results) {
      add_pairs(part, *each);
    }
  }
  part.tables.push_back(results_table(name, results));
  section.parts.push_back(std::move(part));
}

// Names the questions of bench all that have no answer.
void add_failed(DocSection& section, const Json& document) {
  if (!document.contains("failed")) {
    return;
  }
  for (const Json& each : array_field(document, "failed")) {
    section.remarks.push_back(
        fmt::format("{} has failed: {}", text_field(each, "question"), text_field(each, "reason")));
  }
  std::set<std::string> unfinished;
  for (const Json& each : array_field(document, "results")) {
    if (each.is_object() && each.contains("unfinished")) {
      unfinished.insert(text_field(each, "name"));
    }
  }
  if (!unfinished.empty()) {
    section.remarks.push_back(fmt::format(
        "Measured before the deadline, with other rows missing: {}", fmt::join(unfinished, ", ")));
  }
}

void add_left_out(DocSection& section, const Json& document) {
  if (!document.contains("left_out")) {
    return;
  }
  for (const Json& each : array_field(document, "left_out")) {
    section.remarks.push_back("Not measured: " + cell_text(each));
  }
}

void add_provenance(DocSection& section, const Json& document) {
  DocTable table{"Where and how it was measured", {"what", "value"}, {}};
  for (const char* const key : {"program", "host", "environment", "clock"}) {
    if (!document.contains(key) || !document.at(key).is_object()) {
      continue;
    }
    for (const auto& [name, value] : document.at(key).items()) {
      if (!value.is_structured()) {
        table.rows.push_back(
            {name == key ? name : fmt::format("{} {}", key, name), cell_text(value)});
      }
    }
  }
  const auto host = document.find("host");
  if (host != document.end() && host->is_object() && host->contains("gpus")) {
    for (const Json& gpu : array_field(*host, "gpus")) {
      table.rows.push_back(
          {"host GPU", fmt::format("{}, {}", text_field(gpu, "name"), text_field(gpu, "uuid"))});
    }
  }
  table.rows.push_back({"ranks", std::to_string(array_field(document, "ranks").size())});
  table.rows.push_back({"time", time_text(finite_field(document, "time"))});
  section.tables.push_back(std::move(table));
  const double waited = number_in(document, "waited_fraction");
  constexpr double kMuch = 0.1;
  if (waited > kMuch) {
    section.remarks.push_back(
        fmt::format("The measuring processes waited for a core for {:.0f} % of the time: the "
                    "results mean little.",
                    100 * waited));
  }
}

}  // namespace

bool looks_like_bench(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  const std::string_view head = text.substr(0, kHead);
  return head.find("\"schema\"") != std::string_view::npos &&
         head.find("\"command\"") != std::string_view::npos;
}

DocSection bench_section(std::string_view text, const std::string& name) {
  constexpr std::int64_t kSchema = 2;
  const Json document = parse_json(text);
  const std::int64_t schema = count_field(document, "schema");
  if (schema != kSchema) {
    throw DataError(
        fmt::format("its schema is version {}, and this program reads version {}: "
                    "measure again, or use the program that wrote it",
                    schema, kSchema));
  }
  DocSection section;
  section.heading = fmt::format("Benchmark {}: {}", text_field(document, "command"), name);
  add_provenance(section, document);
  add_failed(section, document);
  add_left_out(section, document);
  std::vector<std::pair<std::string, Results>> by_name;
  const Json& results = array_field(document, "results");
  for (std::size_t i = 0; i < std::min(results.size(), kMostResults); ++i) {
    (void)object_field(results[i], "params");
    (void)object_field(results[i], "metrics");
    check_samples(results[i]);
    const std::string& own = text_field(results[i], "name");
    const auto known = std::find_if(by_name.begin(), by_name.end(),
                                    [&](const auto& each) { return each.first == own; });
    if (known == by_name.end()) {
      by_name.push_back({own, {&results[i]}});
    } else {
      known->second.push_back(&results[i]);
    }
  }
  for (const auto& [own, of_name] : by_name) {
    add_results(section, own, of_name);
  }
  return section;
}

}  // namespace trireme
