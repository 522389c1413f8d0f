#include "benchmarks/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 79;
constexpr int kLabelWidth = 30;

std::string duration(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 60) {
    return format_seconds(seconds);
  }
  if (size >= 0.9995) {
    return fmt::format("{:.3g} s", seconds);
  }
  if (size >= 0.9995e-3) {
    return fmt::format("{:.3g} ms", 1e3 * seconds);
  }
  return size >= 0.9995e-6 ? fmt::format("{:.3g} us", 1e6 * seconds)
                           : fmt::format("{:.3g} ns", 1e9 * seconds);
}

// The suffix of a metric's name is its unit, and the rest says what was measured.
struct Unit {
  std::string_view suffix;
  std::string (*text)(double value);
};
constexpr std::array kUnits = {
    Unit{"bytes_per_s", [](double v) { return format_rate(v, "B/s"); }},
    Unit{"flops_per_s", [](double v) { return format_rate(v, "FLOP/s"); }},
    Unit{"tokens_per_s", [](double v) { return format_rate(v, "tokens/s"); }},
    Unit{"GBps", [](double v) { return format_rate(1e9 * v, "B/s"); }},
    Unit{"_bytes", [](double v) { return format_bytes(static_cast<std::int64_t>(v)); }},
    Unit{"_ms", [](double v) { return duration(1e-3 * v); }},
    Unit{"_us", [](double v) { return duration(1e-6 * v); }},
    Unit{"_ns", [](double v) { return duration(1e-9 * v); }},
    Unit{"seconds", duration},
};

// Splits off a bound of a confidence interval, as in "bytes_per_s_low".
std::pair<std::string, std::string> without_bound_of(const std::string& name) {
  for (const std::string bound : {"low", "high"}) {
    if (name.ends_with("_" + bound)) {
      return {name.substr(0, name.size() - bound.size() - 1), ", " + bound};
    }
  }
  return {name, ""};
}

const Unit* unit_of(const std::string& name) {
  const auto found = std::find_if(kUnits.begin(), kUnits.end(),
                                  [&](const Unit& unit) { return name.ends_with(unit.suffix); });
  return found == kUnits.end() ? nullptr : &*found;
}

// Turns the name of a metric into a label: "comm_exposed_ms" -> "comm exposed", "bytes_per_s" ->
// "rate".
std::string label_of(const std::string& metric) {
  const auto [name, bound] = without_bound_of(metric);
  const Unit* const unit = unit_of(name);
  std::string label = unit == nullptr ? name : name.substr(0, name.size() - unit->suffix.size());
  std::replace(label.begin(), label.end(), '_', ' ');
  label.erase(label.find_last_not_of(' ') + 1);
  if (label.empty()) {
    label = name == "seconds" ? "time" : "rate";
  }
  return label + bound;
}

std::string value_text(const std::string& name, const Json& value) {
  if (value.is_number()) {
    return figure_text(name, value.get<double>());
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Formats "model gpt2-124m, precision bf16, ...", broken into indented lines.
std::string parameters_text(const Json& params) {
  std::string text;
  std::string line = " ";
  for (const auto& [key, value] : params.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    const std::string word = fmt::format(
        " {} {},", name, value.is_string() ? printable(value.get<std::string>()) : value.dump());
    if (line.size() > 1 && line.size() + word.size() > kColumns) {
      text += line + "\n";
      line = " ";
    }
    line += word;
  }
  line.back() = line.size() > 1 && line.back() == ',' ? '\n' : line.back();
  return text + line;
}

// Scale says how to rate a result: the ceiling to which `fraction_of_ceiling` refers, and the
// fractions from which it counts as good and as fair.
struct Scale {
  std::string ceiling;
  double good = 0;
  double fair = 0;
};

std::string judged(const std::string& name, double fraction, const Scale& scale) {
  const char* const word = fraction >= scale.good   ? "good"
                           : fraction >= scale.fair ? "fair"
                                                    : "low: find out what slows it down";
  return fmt::format("{}: {:.2f} of {}: {}", name, fraction, scale.ceiling, word);
}

}  // namespace

std::string figure_text(const std::string& name, double value) {
  if (!std::isfinite(value)) {
    return "-";
  }
  if (const Unit* const unit = unit_of(without_bound_of(name).first)) {
    return unit->text(value);
  }
  return value == std::floor(value) && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                             : fmt::format("{:.3g}", value);
}

std::string result_text(const Json& result) {
  std::string text = result.at("name").get<std::string>() + "\n";
  text += parameters_text(result.at("params"));
  for (const auto& [key, value] : result.at("metrics").items()) {
    text += fmt::format("    {:<{}} {}\n", label_of(key), kLabelWidth, value_text(key, value));
  }
  const std::string verdict = verdict_of(result);
  return verdict.empty() ? text : text + verdict + "\n";
}

std::string verdict_of(const Json& result) {
  const std::string name = result.at("name");
  const Json& metrics = result.at("metrics");
  if (name == "pipeline") {
    const double ratio = metrics.at("ratio");
    return fmt::format("pipeline: idle {:.2f} times as long as simulated: {}", ratio,
                       ratio <= 1.1 ? "as expected" : "longer than expected");
  }
  if (name.starts_with("ckpt") && name.ends_with("_stall")) {
    const double ratio = metrics.at("ratio");
    return fmt::format("{}: training stalls for {:.2f} memory copies of its state: {}", name, ratio,
                       ratio <= 1.5 ? "good" : "long");
  }
  const std::map<std::string, Scale> scales = {
      {"step",
       {fmt::format("the machine's {} rate", result.at("params").value("precision", "")), 0.6,
        0.4}},
      {"loader", {"the rate of plain reads", 0.6, 0.3}},
      {"ckpt_write", {"the rate of dd on this disk", 0.7, 0.4}},
      {"ckpt_load", {"the rate of dd on this disk", 0.7, 0.4}},
      {"ckpt_memory_load", {"the rate of a memory copy", 0.5, 0.25}}};
  const auto scale = scales.find(name);
  return scale == scales.end()
             ? ""
             : judged(name, metrics.at("fraction_of_ceiling").get<double>(), scale->second);
}

std::string coll_verdict(const Json& results) {
  std::map<std::string, const Json*> largest;
  for (const Json& result : results) {
    const Json*& entry = largest[result.at("params").at("op")];
    if (entry == nullptr || result.at("params").at("bytes") > entry->at("params").at("bytes")) {
      entry = &result;
    }
  }
  std::string text;
  for (const auto& [op, entry] : largest) {
    const Json& metrics = entry->at("metrics");
    const auto bytes = entry->at("params").at("bytes").get<std::int64_t>();
    text +=
        fmt::format("# {}{}: {}", op, bytes > 0 ? " " + format_bytes(bytes) : "",
                    bytes > 0 ? figure_text("busbw_GBps", metrics.at("busbw_GBps").get<double>())
                              : figure_text("time_us", metrics.at("time_us").get<double>()));
    if (metrics.contains("ratio")) {
      text += fmt::format(", {:.1f} times MPI", metrics.at("ratio").get<double>());
    }
    text += "\n";
  }
  return text;
}

std::string p2p_verdict(const Json& results) {
  std::string latency;
  std::string rate;
  for (const Json& result : results) {
    const Json& metrics = result.at("metrics");
    const std::string size = format_bytes(result.at("params").at("bytes").get<std::int64_t>());
    if (metrics.contains("mean_us") && latency.empty()) {
      latency = fmt::format(" {} for {}", value_text("mean_us", metrics.at("mean_us")), size);
    }
    if (metrics.contains("bandwidth_GBps")) {
      rate = fmt::format(" {} for {}", value_text("bandwidth_GBps", metrics.at("bandwidth_GBps")),
                         size);
    }
  }
  return fmt::format("# p2p:{}{}{}\n", latency, latency.empty() || rate.empty() ? "" : ",", rate);
}

}  // namespace trireme
