#include "benchmarks/tables.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/command/standard_output.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

std::string csv_cell(const Json& value) {
  if (value.is_null() || (value.is_number_float() && !std::isfinite(value.get<double>()))) {
    return "";
  }
  const std::string text =
      printable(value.is_string() ? value.get<std::string>() : json_line(value));
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

// Returns the keys of one part of all results, in the order of their first appearance.
std::vector<std::string> columns_of(const Json& results, const char* part) {
  std::vector<std::string> columns;
  for (const Json& result : results) {
    for (const auto& [key, value] : result.at(part).items()) {
      if (std::find(columns.begin(), columns.end(), key) == columns.end()) {
        columns.push_back(key);
      }
    }
  }
  return columns;
}

// Whether the question of bench all to which a row belongs did not end in time.
bool is_unfinished(const Json& result) { return result.contains("unfinished"); }

// A unit of our metrics, as the end of a name, and what Prometheus wants instead.
struct BaseUnit {
  std::string_view ours;
  std::string_view base;
  double factor;
};
constexpr std::array kBaseUnits = {
    BaseUnit{"_GBps", "_bytes_per_second", 1e9}, BaseUnit{"_per_s", "_per_second", 1},
    BaseUnit{"_ms", "_seconds", 1e-3}, BaseUnit{"_us", "_seconds", 1e-6},
    BaseUnit{"_ns", "_seconds", 1e-9}};

// Splits off a bound of a confidence interval, which stands behind the unit: "time_us_low".
std::pair<std::string, std::string> without_bound(const std::string& name) {
  for (const char* bound : {"_low", "_high"}) {
    if (name.ends_with(bound)) {
      return {name.substr(0, name.size() - std::string_view(bound).size()), bound};
    }
  }
  return {name, ""};
}

struct Gauge {
  std::string name;
  double value;
};

Gauge gauge_of(const std::string& result, const std::string& metric, double value) {
  auto [name, bound] = without_bound(metric);
  for (const BaseUnit& unit : kBaseUnits) {
    if (name.ends_with(unit.ours)) {
      name = name.substr(0, name.size() - unit.ours.size()) + bound + std::string(unit.base);
      bound.clear();
      value *= unit.factor;
      break;
    }
  }
  return {fmt::format("trireme_bench_{}_{}{}", result, name, bound), value};
}

std::string label(const std::string& name, const Json& value) {
  std::string text;
  for (const char c :
       printable_lines(value.is_string() ? value.get<std::string>() : json_line(value))) {
    text += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return fmt::format("{}=\"{}\"", name, text);
}

// If these parameters were labels, every run would start a new time series.
constexpr std::array<std::string_view, 9> kFound = {"aggregated",
                                                    "array_to_cache_ratio",
                                                    "data_to_memory_ratio",
                                                    "huge_page_fraction",
                                                    "iterations",
                                                    "passes",
                                                    "reads",
                                                    "rounds",
                                                    "warmup"};

std::string labels_of(const Json& params) {
  std::string labels;
  for (const auto& [key, value] : params.items()) {
    if (!value.is_null() && !varies_between_runs(key)) {
      labels += (labels.empty() ? "" : ",") + label(key, value);
    }
  }
  return labels;
}

}  // namespace

bool varies_between_runs(std::string_view param) {
  return std::find(kFound.begin(), kFound.end(), param) != kFound.end();
}

std::string results_csv(const Json& results) {
  const std::vector<std::string> params = columns_of(results, "params");
  // A metric with the name of another result's parameter shares its column.
  std::vector<std::string> columns = params;
  for (const std::string& name : columns_of(results, "metrics")) {
    if (std::find(params.begin(), params.end(), name) == params.end()) {
      columns.push_back(name);
    }
  }
  std::string text = "name";
  for (const std::string& column : columns) {
    text += "," + csv_cell(column);
  }
  const bool some_unfinished = std::any_of(results.begin(), results.end(), is_unfinished);
  text += some_unfinished ? ",unfinished\n" : "\n";
  for (const Json& result : results) {
    text += csv_cell(result.at("name"));
    Json values = result.at("metrics");
    values.update(result.at("params"));
    for (const std::string& column : columns) {
      text += "," + csv_cell(values.value(column, Json(nullptr)));
    }
    text += some_unfinished ? (is_unfinished(result) ? ",true\n" : ",\n") : "\n";
  }
  return text;
}

namespace {

// Families of OpenMetrics, whose samples have to follow each other, in the order of their first
// ones.
class Families {
 public:
  void add(const std::string& result, const std::string& metric, double value,
           const std::string& labels) {
    const Gauge gauge = gauge_of(result, metric, value);
    std::string& family = texts_[gauge.name];
    if (family.empty()) {
      order_.push_back(gauge.name);
      family =
          fmt::format("# HELP {0} The metric {1} of trireme bench, result {2}.\n# TYPE {0} gauge\n",
                      gauge.name, metric, result);
    }
    family += fmt::format("{}{{{}}} {:.9g}\n", gauge.name, labels, gauge.value);
  }
  // Adds one sample per pair; of many pairs, those of the slowest ones.
  void add_pairs(const std::string& result, const Json& matrices, const std::string& labels);
  std::string text() const {
    std::string all;
    for (const std::string& name : order_) {
      all += texts_.at(name);
    }
    return all;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> texts_;
};

struct PairValue {
  double value = 0;
  std::size_t from = 0;
  std::size_t to = 0;
};

// Returns the values of a matrix, the slowest pair first.
std::vector<PairValue> pairs_in(const Json& matrix, bool more_is_slower) {
  std::vector<PairValue> pairs;
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    for (std::size_t to = 0; to < matrix[from].size(); ++to) {
      if (matrix[from][to].is_number() && std::isfinite(matrix[from][to].get<double>())) {
        pairs.push_back({matrix[from][to].get<double>(), from, to});
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [&](const PairValue& a, const PairValue& b) {
    return more_is_slower ? a.value > b.value : a.value < b.value;
  });
  return pairs;
}

void Families::add_pairs(const std::string& result, const Json& matrices,
                         const std::string& labels) {
  constexpr std::size_t kMostPairs = 240;  // of 16 members
  constexpr std::size_t kSlowest = 32;
  const Json& members = matrices.at("members");
  const Json& hosts = matrices.at("hosts");
  for (const std::string name : {"bandwidth_GBps", "latency_us"}) {
    if (!matrices.contains(name)) {
      continue;
    }
    std::vector<PairValue> pairs = pairs_in(matrices.at(name), name.ends_with("_us"));
    if (pairs.size() > kMostPairs) {
      pairs.resize(kSlowest);
    }
    for (const PairValue& pair : pairs) {
      add(result, "pair_" + name, pair.value,
          fmt::format("{}{}{},{},{},{}", labels, labels.empty() ? "" : ",",
                      label("from", members.at(pair.from)), label("to", members.at(pair.to)),
                      label("from_host", hosts.at(pair.from)),
                      label("to_host", hosts.at(pair.to))));
    }
  }
}

}  // namespace

std::string results_openmetrics(const Json& results, const BenchContext& context) {
  Families families;
  for (const Json& result : results) {
    const std::string name = result.at("name");
    const std::string labels = labels_of(result.at("params"));
    for (const auto& [key, value] : result.at("metrics").items()) {
      if (value.is_number() && std::isfinite(value.get<double>())) {
        families.add(name, key, value.get<double>(), labels);
      }
    }
    if (result.contains("matrices")) {
      families.add_pairs(name, result.at("matrices"), labels);
    }
  }
  const std::string command = label("command", context.command);
  const auto gauge = [&](const std::string& name, const char* what, const std::string& value) {
    return fmt::format(
        "# HELP trireme_bench_{0} {1}\n# TYPE trireme_bench_{0} gauge\n"
        "trireme_bench_{0}{{{2}}} {3}\n",
        name, what, command, value);
  };
  std::string text = gauge("time_seconds", "When trireme bench measured, since the epoch.",
                           fmt::format("{:.3f}", context.time));
  if (!std::isnan(context.waited_fraction)) {
    text += gauge("waited_fraction",
                  "The fraction of its time that the rank which waited longest waited for a core.",
                  fmt::format("{:.6g}", context.waited_fraction));
  }
  text += gauge("left_out", "The number of results for which there was no time or memory.",
                std::to_string(context.left_out.size()));
  text += gauge("failed", "The number of questions that have failed.",
                std::to_string(context.failed.size()));
  return text + families.text() + "# EOF\n";
}

}  // namespace trireme
