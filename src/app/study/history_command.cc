#include "src/app/study/history_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/study/history.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

struct HistoryOptions {
  std::string file = "history.jsonl";
  std::vector<std::string> results;
  double threshold = 2;  // percent
  bool check = false;
  bool json = false;
  KeyChoice keys;  // of encrypted runs
};

std::string day_of(const HistoryEntry& entry) {
  // Beyond the year 9999, gmtime may fail.
  const double time = std::min(entry.time, 253402300799.0);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(time)));
}

std::string title_of(const HistorySeries& series) {
  std::string title = series.name;
  for (const auto& [param, value] : series.params) {
    title += fmt::format(" {}={}", param, value);
  }
  return fmt::format("{}: {} on {}", title, series.samples,
                     series.host.empty() ? "an unknown host" : series.host);
}

std::string change_text(const HistorySeries& series, const Level& level) {
  if (level.change == 0) {
    return "";
  }
  const std::string& before = series.entries[level.begin - 1].commit;
  const std::string& after = series.entries[level.begin].commit;
  return fmt::format("  {:+.1f} % {}{}", 100 * level.change, level.slower ? "SLOWER" : "faster",
                     before == after ? ""
                                     : fmt::format(", commit {} -> {}", before.substr(0, 10),
                                                   after.substr(0, 10)));
}

void print_series(const HistorySeries& series, const std::vector<Level>& levels) {
  fmt::print("{}\n", printable(title_of(series)));
  for (const Level& level : levels) {
    fmt::print("  {} to {}  {:>4} x  median {:<9.5g}{}\n", day_of(series.entries[level.begin]),
               day_of(series.entries[level.end - 1]), level.end - level.begin, level.median,
               printable(change_text(series, level)));
  }
}

Json to_json(const HistorySeries& series, const std::vector<Level>& levels) {
  Json entries = Json::array();
  for (const HistoryEntry& entry : series.entries) {
    entries.push_back({{"time", entry.time},
                       {"median", entry.median},
                       {"low", entry.low},
                       {"high", entry.high},
                       {"commit", entry.commit}});
  }
  Json parts = Json::array();
  for (const Level& level : levels) {
    parts.push_back({{"begin", level.begin},
                     {"end", level.end},
                     {"time", series.entries[level.begin].time},
                     {"median", level.median},
                     {"change", level.change},
                     {"slower", level.slower}});
  }
  return {{"command", series.command}, {"name", series.name}, {"params", series.params},
          {"samples", series.samples}, {"host", series.host}, {"machine", series.machine},
          {"entries", entries},        {"levels", parts}};
}

void add_results(const HistoryOptions& options) {
  if (const std::string problem = problem_with_place_of_result(options.file); !problem.empty()) {
    throw ConfigError(
        fmt::format("FILE: {} {}: name another file", printable(options.file), printable(problem)));
  }
  const KeyedTextReader reader = options.keys.reader();
  for (const std::string& path : options.results) {
    const MeasuredResult result = read_measured_result(path, reader);
    warn_of_damaged_lines(result);
    for (const std::string& question : result.failed) {
      fmt::print(stderr, "trireme: {}: no complete answer of {}; only rows that it has are added\n",
                 printable(path), printable(question));
    }
    const Added added = add_to_history(options.file, result);
    if (added.lines + added.present == 0) {
      throw DataError(fmt::format(
          "{}: nothing in it belongs into a history: {}", path,
          result.time > 0
              ? "none of its samples can be judged: each set holds a zero or a negative number, "
                "is empty, or has an unknown unit"
              : "its time is missing, zero or negative"));
    }
    fmt::print("{}: {} added to {}{}\n", printable(path), counted(added.lines, "line"),
               printable(options.file),
               added.present > 0 ? fmt::format(", {} already there", added.present) : "");
  }
}

void show(const HistoryOptions& options, int& exit_code) {
  if (!std::filesystem::exists(options.file)) {
    throw NotFound(fmt::format(
        "{} does not exist: 'trireme history {} --add RESULT' creates it with its first result",
        options.file, options.file));
  }
  const History history = read_history(options.file);
  if (history.torn_lines > 0) {
    fmt::print(stderr, "trireme: {}: ignored {} that a crash has torn\n", printable(options.file),
               counted(history.torn_lines, "line"));
  }
  if (options.check && history.series.empty()) {
    throw DataError(
        fmt::format("{}: no result is left in it, so that nothing can be checked: was it cut off?",
                    options.file));
  }
  Json all = Json::array();
  std::int64_t slower = 0;
  for (const HistorySeries& series : history.series) {
    const std::vector<Level> levels = levels_of(series, options.threshold / 100);
    slower += levels.back().slower ? 1 : 0;
    if (options.json) {
      all.push_back(to_json(series, levels));
    } else {
      print_series(series, levels);
    }
  }
  if (options.json) {
    print_json({{"schema", 1}, {"file", options.file}, {"slower", slower}, {"series", all}});
  } else {
    fmt::print("# {} series, {} slower since the last change\n", history.series.size(), slower);
  }
  if (options.check && slower > 0) {
    exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

}  // namespace

void add_history_command(CommandLine& app, int& exit_code, const AccessSource& access) {
  CommandLine& command =
      app.add_command("history", "Keep results over time and find when something changed");
  const auto options = std::make_shared<HistoryOptions>();
  options->keys.access = access;
  command.add_option("FILE", options->file, "The history, to which nothing but results is added");
  command
      .add_option("--add", options->results,
                  "Add a result: a file of bench -J or a run's folder; can be repeated")
      .one_value_per_use()
      .type_name("RESULT");
  options->keys.add_to(command);
  command
      .add_option("--threshold", options->threshold, "Ignore changes that are smaller than PERCENT")
      .type_name("PERCENT")
      .check(within(0.0, 1000.0));
  command.add_flag("--check", options->check,
                   "Exit with 4 if the last change of any series was for the worse");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme bench mem -J mem.json && trireme history site.jsonl --add mem.json\n"
      "  trireme history site.jsonl --check\n"
      "With --add, prints what was added; otherwise prints each series, divided where its level "
      "changed. A result that is in the history already is not added again, and several processes "
      "may add results at once. docs/studies.md describes the file and the search for changes.");
  command.callback([options, &exit_code] {
    if (options->results.empty()) {
      show(*options, exit_code);
    } else {
      add_results(*options);
    }
  });
}

}  // namespace trireme
