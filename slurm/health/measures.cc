#include "slurm/health/measures.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/median.h"
#include "src/base/sealed_json.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kVersion = 1;
// 1.4826 times the MAD estimates the standard deviation of a normal distribution.
constexpr double kDeviations = 3 * 1.4826;
constexpr double kMostRate = 1e18;
// A rate below this fraction is reported, however large the scatter.
constexpr double kLeastFraction = 0.25;

double number_field(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = field(object, name);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= kMostRate)) {
    throw DataError(fmt::format("field '{}' is not a rate", name));
  }
  return number;
}

}  // namespace

Rate rate_of(const std::vector<double>& samples, std::string unit) {
  const double middle = median(samples);
  std::vector<double> apart;
  for (const double sample : samples) {
    apart.push_back(std::abs(sample - middle));
  }
  return {middle, median(apart), std::move(unit)};
}

std::string baseline_text(const Measures& measures) {
  nlohmann::ordered_json rates = nlohmann::ordered_json::object();
  for (const auto& [name, rate] : measures.rates) {
    rates[name] = {{"median", rate.median}, {"deviation", rate.deviation}, {"unit", rate.unit}};
  }
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [name, fact] : measures.facts) {
    facts[name] = fact;
  }
  nlohmann::ordered_json counters = nlohmann::ordered_json::object();
  for (const auto& [name, count] : measures.counters) {
    counters[name] = count;
  }
  return seal_json({{"format", "trireme health baseline"},
                    {"version", kVersion},
                    {"node", measures.node},
                    {"time", measures.time},
                    {"folder", measures.folder},
                    {"counters", counters},
                    {"facts", facts},
                    {"rates", rates}});
}

Measures parse_baseline(std::string_view text) {
  const nlohmann::json json = unseal_json(text, kVersion);
  if (text_field(json, "format") != "trireme health baseline") {
    throw DataError("this file is not a baseline of trireme health");
  }
  Measures measures;
  measures.node = text_field(json, "node");
  measures.folder = json.contains("folder") ? text_field(json, "folder") : "";
  const nlohmann::json& facts = object_field(json, "facts");
  for (const auto& item : facts.items()) {
    const std::string& name = item.key();
    const std::string fact = text_field(facts, name.c_str());
    // Older baselines describe the clock in other words.
    measures.facts[name] = name != "clock"            ? fact
                           : fact == "kept"           ? "synchronised"
                           : fact == "kept by nobody" ? "not synchronised (no NTP)"
                                                      : fact;
  }
  for (const auto& [name, rate] : object_field(json, "rates").items()) {
    measures.rates[name] = {number_field(rate, "median"), number_field(rate, "deviation"),
                            text_field(rate, "unit")};
  }
  if (json.contains("counters")) {
    measures.time = count_field(json, "time");
    const nlohmann::json& counters = object_field(json, "counters");
    for (const auto& [name, count] : counters.items()) {
      measures.counters[name] = count_field(counters, name.c_str());
    }
  }
  return measures;
}

Measures load_baseline(const std::filesystem::path& file) {
  constexpr std::int64_t kMostBytes = 1 << 20;
  const std::string text = read_file(file, kMostBytes);  // the message of a failure names the file
  try {
    return parse_baseline(text);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}: {}; on a healthy node, trireme health --save-baseline {} makes a new one",
                    file.string(), error.what(), file.string()));
  }
}

namespace {

// Formats four digits, and large rates without an exponent.
std::string plain(double rate) {
  return rate < 1e4 ? fmt::format("{:.4g}", rate) : fmt::format("{:.0f}", rate);
}

// A counter that is smaller than in the baseline was reset by a restart of the node.
void compare_counters(const Measures& now, const Measures& baseline,
                      std::vector<std::string>& complaints) {
  constexpr std::int64_t kDaySeconds = 86400;
  const std::int64_t days = std::max<std::int64_t>(1, (now.time - baseline.time) / kDaySeconds);
  for (const auto& [name, was] : baseline.counters) {
    const auto found = now.counters.find(name);
    const std::int64_t is = found == now.counters.end() ? was : found->second;
    const std::int64_t grown = is < was ? is : is - was;
    if (grown > kErrorsADay * days) {
      complaints.push_back(fmt::format(
          "{}: {} since the baseline was saved, more than {} per day: {}, then save the baseline "
          "again",
          name, counted(grown, "error"), kErrorsADay,
          name.starts_with("GPU") ? "reset the GPU and check how it is seated"
                                  : "check the cable and the port"));
    }
  }
}

}  // namespace

std::vector<std::string> compare(const Measures& now, const Measures& baseline, double fraction) {
  std::vector<std::string> complaints;
  for (const auto& [name, was] : baseline.rates) {
    const auto found = now.rates.find(name);
    if (found == now.rates.end()) {
      complaints.push_back(fmt::format("{}: could not be measured", name));
      continue;
    }
    const Rate& is = found->second;
    const double least =
        std::max(kLeastFraction * was.median,
                 std::min(fraction * was.median, was.median - kDeviations * was.deviation));
    if (is.median < least) {
      complaints.push_back(fmt::format(
          "{}: {} {}, {:.0f} % of the baseline's {} (required: {:.0f} %)", name, plain(is.median),
          is.unit, 100 * is.median / was.median, plain(was.median), 100 * least / was.median));
    }
  }
  for (const auto& [name, was] : baseline.facts) {
    const auto found = now.facts.find(name);
    const std::string is = found == now.facts.end() ? "gone" : found->second;
    if (is != was) {
      complaints.push_back(fmt::format("{}: {}, was {}", name, is, was));
    }
  }
  compare_counters(now, baseline, complaints);
  return complaints;
}

}  // namespace trireme
