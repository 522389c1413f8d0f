#include "src/study/run_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/config_tree.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_lines.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr const char* kLog = "logs/rank-00000.jsonl";
constexpr std::array kParts = {"data_wait_ms", "comm_exposed_ms", "tensor_wait_ms",
                               "pipeline_wait_ms", "checkpoint_stall_ms"};

// Keys of a configuration, or beginnings of them, that change no speed or name only a place.
constexpr std::array<std::string_view, 23> kHarmless = {
    "run.dir",           "run.name",          "run.log_",           "data.train",
    "data.validation",   "data.seed",         "train.seed",         "train.steps",
    "train.eval_",       "train.early_stop.", "optimizer.lr",       "optimizer.schedule.",
    "optimizer.eps",     "optimizer.betas",   "optimizer.weight_",  "checkpoint.dir",
    "checkpoint.resume", "checkpoint.keep",   "comm.deadline.",     "divergence.",
    "launch.on_event",   "energy.",           "metrics.openmetrics"};

bool is_harmless(std::string_view key) {
  return std::any_of(kHarmless.begin(), kHarmless.end(),
                     [&](std::string_view each) { return key.starts_with(each); });
}

bool has_number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() && std::isfinite(found->get<double>());
}

void add_config(std::string_view text, const std::string& origin, MeasuredResult& result) {
  for (const ConfigEntry& entry : parse_config(text, origin + "/config.yaml")) {
    auto& into = is_harmless(entry.key) ? result.circumstances : result.conditions;
    into[entry.key] = entry.value.to_yaml();
  }
}

// Adds how the start of a run, as its log tells it, spread the ranks over nodes.
void add_spread(const json& line, std::set<std::string>& spreads) {
  const json ranks = line.value("ranks", json());
  const bool is_list = line.value("event", json()) == "nodes" && ranks.is_array() && !ranks.empty();
  if (is_list && std::all_of(ranks.begin(), ranks.end(),
                             [](const json& each) { return each.is_number_integer(); })) {
    spreads.insert(spread_text(ranks.get<std::vector<std::int64_t>>()));
  }
}

// The log says on what the run computed. If several starts differ, all their values are listed.
void add_log(std::string_view text, MeasuredResult& result) {
  std::map<std::string, std::set<std::string>> conditions;
  std::set<std::string> hosts;
  std::set<std::string> spreads;
  const auto add = [&](const json& line, const char* event, const char* key) {
    if (line.value("event", json()) == event && line.contains(key)) {
      const json& value = line[key];
      conditions[fmt::format("{}.{}", event, key)].insert(
          value.dump(-1, ' ', false, json::error_handler_t::replace));
    }
  };
  result.damaged_log = use_objects(text, [&](const json& line) {
    for (const auto& [event, key] :
         {std::pair("start", "ranks"), std::pair("rank", "cores"), std::pair("rank", "kernels"),
          std::pair("rank", "threads"), std::pair("device", "kind"), std::pair("layout", "dp"),
          std::pair("layout", "tp"), std::pair("layout", "pp"), std::pair("layout", "zero")}) {
      add(line, event, key);
    }
    if (line.contains("host") && line["host"].is_string()) {
      hosts.insert(line["host"].get<std::string>());
    }
    add_spread(line, spreads);
    return true;
  });
  for (const auto& [key, values] : conditions) {
    result.conditions[key] = fmt::format("{}", fmt::join(values, ", "));
  }
  result.circumstances["host of rank 0"] = fmt::format("{}", fmt::join(hosts, ", "));
  if (!spreads.empty()) {  // programs before 2026-11-28 did not log it
    result.circumstances[kSpread] = fmt::format("{}", fmt::join(spreads, ", "));
  }
}

// Adds the times of the steps after the first. time: set to that of the last step, if it has one.
DamagedLines add_steps(std::string_view metrics, ResultRow& row, double& time) {
  bool first = true;
  return use_objects(metrics, [&](const json& line) {
    if (!is_metrics_line(line) || !has_number(line, "step_ms")) {
      return is_metrics_line(line);  // it may hold nothing but an evaluation
    }
    time = has_number(line, "time") ? line["time"].get<double>() : time;
    for (SampleSet& samples : row.samples) {
      if (!first && has_number(line, samples.name.c_str())) {
        samples.values.push_back(checked_sample(samples.name, line[samples.name].get<double>()));
      }
    }
    first = false;
    return true;
  });
}

}  // namespace

std::string spread_text(const std::vector<std::int64_t>& ranks) {
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end());
  return fmt::format("{}{} on {}{}", *least == *most ? "" : fmt::format("{} to ", *least),
                     counted(*most, "rank"), ranks.size() == 1 ? "" : "each of ",
                     counted(std::ssize(ranks), "node"));
}

MeasuredResult parse_run_result(std::string_view metrics, std::string_view config,
                                std::string_view log, const std::string& origin) {
  MeasuredResult result;
  result.origin = origin;
  result.command = "train";
  ResultRow row{"train", {}, {{"step_ms", {}, 0, false}}};
  for (const char* part : kParts) {
    row.samples.push_back({part, {}, 0, true});
  }
  try {
    result.damaged_lines = add_steps(metrics, row, result.time);
  } catch (const DataError& error) {
    throw data_error_in(origin + "/metrics.jsonl", error);
  }
  if (row.samples.front().values.empty()) {
    const DamagedLines& damaged = result.damaged_lines;
    throw DataError(fmt::format(
        "{}/metrics.jsonl has fewer than two logged steps{}: nothing to compare", origin,
        damaged.count > 0 ? fmt::format(", and {}", damaged.to_text()) : std::string()));
  }
  result.rows.push_back(std::move(row));
  if (!config.empty()) {
    try {
      add_config(config, origin, result);
    } catch (const ConfigError& error) {
      throw DataError(error.what());
    }
  }
  add_log(log, result);
  return result;
}

void warn_of_damaged_lines(const MeasuredResult& result) {
  const std::filesystem::path run = result.origin;
  warn_of(result.damaged_lines, run / "metrics.jsonl");
  warn_of(result.damaged_log, run / kLog);
}

MeasuredResult read_run_result(const std::filesystem::path& folder, const TextReader& reader) {
  const std::filesystem::path metrics = folder / "metrics.jsonl";
  if (!std::filesystem::exists(metrics)) {
    throw NotFound(fmt::format(
        "{} has no metrics.jsonl: give the folder of a run (run.dir), or a file that trireme bench "
        "-J FILE wrote",
        folder.string()));
  }
  const std::filesystem::path config = folder / "config.yaml";
  const std::filesystem::path log = folder / kLog;
  MeasuredResult result = parse_run_result(
      reader.read(metrics, kMostResultBytes),
      std::filesystem::exists(config) ? read_file(config, kMostResultBytes) : "",
      std::filesystem::exists(log) ? reader.read(log, kMostResultBytes) : "", folder.string());
  result.circumstances["run.finished"] = std::filesystem::exists(folder / "DONE") ? "yes" : "no";
  return result;
}

}  // namespace trireme
