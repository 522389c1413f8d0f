#include "src/study/accept_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/median.h"
#include "src/study/comparison.h"

namespace trireme {
namespace {

// Metrics of a row that say its result as a rate. The times that they come from are compared, so
// that the rates of rows with times count for limits only.
constexpr std::array kRates = {"flops_per_s",    "bytes_per_s",  "operations_per_s",
                               "samples_per_s",  "tokens_per_s", "median_GBps",
                               "bandwidth_GBps", "algbw_GBps",   "busbw_GBps"};
constexpr const char* kLost = "lost_fraction";
constexpr double kLeastSpeed = 1e-6;  // of a node that loses all of its time

std::string unit_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kUnitTexts = {
      {{"flops_per_s", "FLOP/s"},
       {"bytes_per_s", "B/s"},
       {"_per_s", "per s"},
       {"_GBps", "GB/s"},
       {"_us", "us"},
       {"_ms", "ms"},
       {"_ns", "ns"},
       {"seconds", "s"}}};
  for (const auto& [end, unit] : kUnitTexts) {
    if (name.ends_with(end)) {
      return std::string(unit);
    }
  }
  return "";
}

// Returns the parameters of a row that its title leaves out, apart from names of hosts and what is
// absent or off.
std::string details_of(const ResultRow& row, const std::string& title) {
  std::string details;
  for (const auto& [param, value] : row.params) {
    const std::string text = fmt::format("{}={}", param, value);
    if (param != "host" && param != "hosts" && value != "null" && value != "false" &&
        (title + " ").find(" " + text + " ") == std::string::npos) {
      details += (details.empty() ? "" : " ") + text;
    }
  }
  return details;
}

void add_value(AcceptSubject& subject, const std::string& name, AcceptValues like, double value) {
  const auto [place, is_new] = subject.measured.try_emplace(name, std::move(like));
  place->second.values.push_back(value);
}

// Returns whether it found anything to judge.
bool add_row(const ResultRow& row, const MeasuredResult& result, AcceptSubject& subject) {
  const std::string title = row_title(row, result);
  const std::string details = details_of(row, title);
  bool found = false;
  for (const SampleSet& samples : row.samples) {
    const Better better = better_of(samples.name);
    const double value = median(samples.values);
    if (!samples.reference && better != Better::unknown && value > 0) {
      add_value(subject, title + " " + samples.name, {better, unit_of(samples.name), {}, details},
                value);
      found = true;
    }
  }
  const bool has_times = found;
  for (const char* const rate : kRates) {
    const auto metric = row.metrics.find(rate);
    if (metric != row.metrics.end() && metric->second > 0) {
      add_value(subject, title + " " + rate,
                {Better::higher, unit_of(rate), {}, details, false, !has_times}, metric->second);
      found = true;
    }
  }
  const auto lost = row.metrics.find(kLost);
  if (lost != row.metrics.end() && lost->second >= 0 && lost->second <= 1) {
    add_value(subject, title + " " + kLost, {Better::lower, "of the time", {}, details, true},
              lost->second);
    found = true;
  }
  return found;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) {
    words.insert(word);
  }
  return words;
}

bool concerns(const std::string& limit, const std::string& name, const AcceptValues& values) {
  const std::set<std::string> there = words_of(name + " " + values.details);
  const std::set<std::string> asked = words_of(limit);
  return !asked.empty() && std::includes(there.begin(), there.end(), asked.begin(), asked.end());
}

std::string list_of(const std::map<std::string, AcceptValues>& figures) {
  constexpr std::size_t kMostNames = 24;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, values] : figures) {
    if (++count > kMostNames) {
      return text + fmt::format("; and {} more", figures.size() - kMostNames);
    }
    text += fmt::format("{}'{}'", text.empty() ? "" : "; ", name);
    text += values.details.empty() ? "" : fmt::format(" ({})", values.details);
  }
  return text;
}

}  // namespace

void add_health(std::string_view text, AcceptSubject& subject) {
  const nlohmann::json health = parse_json(text);
  for (const nlohmann::json& complaint : array_field(health, "complaints")) {
    if (!complaint.is_string()) {
      throw DataError("a complaint is not a text");
    }
    subject.complaints.insert(complaint.get<std::string>());
  }
  const nlohmann::json& rates = object_field(health, "rates");
  for (const auto& [name, rate] : rates.items()) {
    const nlohmann::json& value = field(rate, "median");
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      throw DataError(fmt::format("the rate {} is not a number above 0", name));
    }
    add_value(subject, name, {Better::higher, text_field(rate, "unit"), {}}, value.get<double>());
  }
  if (rates.empty() && health.at("complaints").empty()) {
    throw DataError("there are neither rates nor complaints");
  }
  if (const auto waited = health.find("waited_fraction");
      waited != health.end() && waited->is_number()) {
    double& most = subject.waited["health"];
    most = std::max(most, waited->get<double>());
  }
}

void add_result(const MeasuredResult& result, AcceptSubject& subject) {
  bool found = false;
  for (const ResultRow& row : result.rows) {
    found = add_row(row, result, subject) || found;
  }
  if (!found) {
    throw DataError("it holds no figure above 0 that can be judged");
  }
}

double speed_of(double value, const AcceptValues& of) {
  if (of.lost) {
    return std::max(1 - value, kLeastSpeed);
  }
  return of.better == Better::lower ? 1 / value : value;
}

std::optional<AcceptLimit> limit_of(const std::string& name, const AcceptValues& values,
                                    const AcceptProfile::Demands& demands) {
  std::optional<AcceptLimit> strictest;
  for (const auto& [limit, value] : demands.limits) {
    if (concerns(limit, name, values) &&
        (!strictest || speed_of(value, values) > speed_of(strictest->value, values))) {
      strictest = AcceptLimit{limit, value};
    }
  }
  return strictest;
}

std::string refused_problem(const std::vector<AcceptSubject>& subjects, const std::string& key) {
  if (subjects.empty()) {
    return "";
  }
  for (const auto& [measure, why] : subjects.front().refused) {
    if (std::all_of(subjects.begin(), subjects.end(), [&](const AcceptSubject& subject) {
          return subject.refused.contains(measure);
        })) {
      return fmt::format(
          "every {0} refused '{1}', so that the profile is at fault: {2}; look at {0}.measures, "
          "{0}.start and program",
          key, measure, why);
    }
  }
  return "";
}

std::string limit_problem(const std::vector<AcceptSubject>& subjects,
                          const AcceptProfile::Demands& demands, const std::string& key) {
  std::map<std::string, AcceptValues> figures;
  bool complete = false;
  for (const AcceptSubject& subject : subjects) {
    figures.insert(subject.measured.begin(), subject.measured.end());
    complete = complete || subject.complaints.empty();
  }
  for (const auto& [limit, value] : demands.limits) {
    std::map<std::string, AcceptValues> concerned;
    std::set<std::string> units;
    for (const auto& [name, values] : figures) {
      if (concerns(limit, name, values)) {
        concerned.emplace(name, values);
        units.insert(fmt::format("{} {}", values.unit, static_cast<int>(values.better)));
      }
    }
    if (concerned.empty() && complete) {
      return fmt::format(
          "{}: '{}={:g}' concerns nothing that was measured. All of its words must occur in a name "
          "or in the parameters behind it. There are: {}",
          key, limit, value, list_of(figures));
    }
    if (units.size() > 1) {
      return fmt::format("{}: '{}={:g}' concerns figures with different units: {}. Add a word", key,
                         limit, value, list_of(concerned));
    }
  }
  return "";
}

}  // namespace trireme
