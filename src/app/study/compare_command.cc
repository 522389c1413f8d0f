#include "src/app/study/compare_command.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/study/comparison.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBusy = 0.1;            // above this fraction of waiting, times mean little
constexpr std::size_t kMostListed = 10;  // differences in a message

struct CompareOptions {
  std::string a, b;
  double threshold = 2;     // percent
  double false_alarms = 1;  // percent
  bool allow_unlike = false;
  bool json = false;
  KeyChoice keys;  // of encrypted runs
};

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:+.1f} %", 100 * fraction) : "?";
}

std::string median_text(double median) {
  return std::isfinite(median) ? fmt::format("{:.5g}", median) : "none";
}

std::string p_text(double p) { return p < 1e-4 ? "p < 0.0001" : fmt::format("p = {:.2g}", p); }

std::string verdict_text(const RowComparison& row) {
  switch (row.verdict) {
    case ChangeVerdict::regression:
      return "REGRESSION";
    case ChangeVerdict::improvement:
      return "improvement";
    case ChangeVerdict::unchanged:
      return "unchanged";
    case ChangeVerdict::undecided:
      return "undecided: " + row.why;
    case ChangeVerdict::not_judged:
      return row.reference ? "reference" : "not judged: " + row.why;
  }
  return "";
}

void print_row(const RowComparison& row) {
  std::string change = percent(row.change.estimate);
  if (std::isfinite(row.change.low) && std::isfinite(row.change.high)) {
    change += fmt::format(" ({} to {})", percent(row.change.low), percent(row.change.high));
  }
  fmt::print("  {}: {} -> {}, {}", printable(row.samples), median_text(row.median_a),
             median_text(row.median_b), std::isnan(row.change.estimate) ? "no ratio" : change);
  if (!row.reference && !std::isnan(row.change.estimate)) {
    fmt::print(", {}", p_text(row.p_adjusted));
  }
  fmt::print("\n    {}\n", printable(verdict_text(row)));
}

// A file may state any number as its time, or none.
std::string minute_of(double time) {
  constexpr double kYear10000 = 253402300800;
  return time > 0 && time < kYear10000
             ? fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(time)))
             : "at an unknown time";
}

void print_origin(const char* name, const MeasuredResult& result) {
  const auto commit = result.circumstances.find("program.commit");
  const auto finished = result.circumstances.find("run.finished");
  const bool cut_short = finished != result.circumstances.end() && finished->second == "no";
  fmt::print("{}: {}, {}, {}{}{}\n", name, printable(result.origin), printable(result.command),
             minute_of(result.time), cut_short ? ", a run that has not finished" : "",
             commit == result.circumstances.end()
                 ? ""
                 : ", commit " + printable(commit->second.substr(0, 10)));
  for (const std::string& question : result.failed) {
    fmt::print("{}: no complete answer of {}\n", name, printable(question));
  }
}

// Circumstances explain a change: a new kernel, another commit, another host.
void print_circumstances(const MeasuredResult& a, const MeasuredResult& b) {
  for (const auto& [key, value] : a.circumstances) {
    const auto other = b.circumstances.find(key);
    if (other != b.circumstances.end() && other->second != value) {
      fmt::print("also different: {}: {} and {}\n", printable(key), printable(value),
                 printable(other->second));
    }
  }
}

// Returns how many rows had no verdict, without those that are only shown.
std::int64_t not_judged(const Comparison& comparison) {
  return std::count_if(comparison.rows.begin(), comparison.rows.end(), [](const auto& row) {
    return row.verdict == ChangeVerdict::not_judged && !row.reference;
  });
}

std::string summary(const Comparison& comparison, const ComparisonRules& rules) {
  const auto count = [&](ChangeVerdict verdict) {
    return static_cast<std::int64_t>(comparison.count_of(verdict));
  };
  std::string text = fmt::format(
      "{}, {}, {} unchanged", counted(count(ChangeVerdict::regression), "regression"),
      counted(count(ChangeVerdict::improvement), "improvement"), count(ChangeVerdict::unchanged));
  if (count(ChangeVerdict::undecided) > 0) {
    text += fmt::format(", {} undecided", count(ChangeVerdict::undecided));
  }
  if (const std::int64_t unknown = not_judged(comparison); unknown > 0) {
    text += fmt::format(", {} not judged", unknown);
  }
  return text + fmt::format(" (threshold {:g} %, false alarms {:g} %)", 100 * rules.threshold,
                            100 * rules.alpha);
}

void print_comparison(const Comparison& comparison, const MeasuredResult& a,
                      const MeasuredResult& b, const ComparisonRules& rules) {
  print_origin("A", a);
  print_origin("B", b);
  print_circumstances(a, b);
  const RowTitles title_of(a);
  std::string name;  // of the rows before
  const ResultRow* last = nullptr;
  for (const RowComparison& row : comparison.rows) {
    if (const std::string shared = title_of.shared_by(row.row->name);
        row.row->name != std::exchange(name, row.row->name) && !shared.empty()) {
      fmt::print("all rows of {}: {}\n", printable(name), printable(shared));
    }
    if (row.row != last) {
      fmt::print("{}\n", printable(title_of(*row.row)));
      last = row.row;
    }
    print_row(row);
  }
  for (const std::string& title : comparison.only_a) {
    fmt::print("{}\n    only in A\n", printable(title));
  }
  for (const std::string& title : comparison.only_b) {
    fmt::print("{}\n    only in B\n", printable(title));
  }
  fmt::print("# {}\n", summary(comparison, rules));
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const RowComparison& row) {
  return {{"name", row.row->name},
          {"params", row.row->params},
          {"samples", row.samples},
          {"better", row.better == Better::unknown ? Json(nullptr)
                     : row.better == Better::lower ? Json("lower")
                                                   : Json("higher")},
          {"verdict", name_of(row.verdict)},
          {"why", row.why.empty() ? Json(nullptr) : Json(row.why)},
          {"median_a", number(row.median_a)},
          {"median_b", number(row.median_b)},
          {"samples_a", row.count_a},
          {"samples_b", row.count_b},
          {"change", number(row.change.estimate)},
          {"change_low", number(row.change.low)},
          {"change_high", number(row.change.high)},
          {"worse_probability", row.worse_probability},
          {"u", row.test.u},
          {"p", row.test.p},
          {"p_adjusted", row.p_adjusted},
          {"exact", row.test.exact}};
}

Json to_json(const Comparison& comparison, const MeasuredResult& a, const MeasuredResult& b,
             const std::vector<std::string>& unlike, const ComparisonRules& rules) {
  Json rows = Json::array();
  for (const RowComparison& row : comparison.rows) {
    rows.push_back(to_json(row));
  }
  return {{"schema", 1},
          {"a", a.origin},
          {"b", b.origin},
          {"command", a.command},
          {"threshold", rules.threshold},
          {"alpha", rules.alpha},
          {"unlike", unlike},
          {"regressions", comparison.count_of(ChangeVerdict::regression)},
          {"improvements", comparison.count_of(ChangeVerdict::improvement)},
          {"undecided", comparison.count_of(ChangeVerdict::undecided)},
          {"rows", rows},
          {"only_a", comparison.only_a},
          {"only_b", comparison.only_b},
          {"failed_a", a.failed},
          {"failed_b", b.failed}};
}

std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kMostListed; ++i) {
    text += "\n  " + all[i];
  }
  return all.size() <= kMostListed
             ? text
             : text + fmt::format("\n  and {} more", all.size() - kMostListed);
}

void warn_of(const MeasuredResult& result) {
  warn_of_damaged_lines(result);
  if (result.waited_fraction > kBusy) {
    fmt::print(stderr,
               "trireme: {}: the benchmark waited {:.0f} % of its time for a core: its times mean "
               "little\n",
               printable(result.origin), 100 * result.waited_fraction);
  }
}

// A pipeline must not take a comparison that has answered nothing for one without a regression.
void check_decided(const Comparison& comparison) {
  const std::size_t undecided = comparison.count_of(ChangeVerdict::undecided);
  if (comparison.count_of(ChangeVerdict::not_judged) + undecided < comparison.rows.size()) {
    return;
  }
  throw ConfigError(
      undecided == 0
          ? "nothing could be judged, so it is unknown whether anything is slower"
          : "nothing could be decided, so it is unknown whether anything is slower: take more "
            "samples (bench --duration, more steps of a run), or raise --threshold");
}

void compare(const CompareOptions& options, int& exit_code) {
  const KeyedTextReader reader = options.keys.reader();
  MeasuredResult a = read_measured_result(options.a, reader);
  MeasuredResult b = read_measured_result(options.b, reader);
  warn_of(a);
  if (b.origin != a.origin) {
    warn_of(b);
  }
  forget_lone_hosts(a, b);
  const std::vector<std::string> unlike = differences(a, b);
  if (!unlike.empty() && (!options.allow_unlike || a.command != b.command)) {
    throw ConfigError(fmt::format(
        "{} and {} differ in more than speed:{}\nA comparison would blame the program for that. "
        "{}",
        options.a, options.b, listed(unlike),
        a.command == b.command ? "Override with --allow-unlike" : "Compare like with like"));
  }
  if (!unlike.empty()) {
    fmt::print(stderr, "trireme: the two differ in more than speed:{}\n",
               printable_lines(listed(unlike)));
  }
  const ComparisonRules rules{options.threshold / 100, options.false_alarms / 100};
  const Comparison comparison = compare_results(a, b, rules);
  if (comparison.rows.empty()) {
    throw ConfigError(
        fmt::format("{} and {} have no samples in common: they were measured with other options "
                    "or in other units",
                    options.a, options.b));
  }
  options.json ? print_json(to_json(comparison, a, b, unlike, rules))
               : print_comparison(comparison, a, b, rules);
  flush_standard_output();  // lost output is worse than what the comparison says
  check_decided(comparison);
  if (comparison.count_of(ChangeVerdict::regression) > 0) {
    exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

}  // namespace

void add_compare_command(CommandLine& app, int& exit_code, const AccessSource& access) {
  CommandLine& command =
      app.add_command("compare", "Say whether a measurement is slower than an earlier one");
  const auto options = std::make_shared<CompareOptions>();
  options->keys.access = access;
  command.add_option("A", options->a, "The earlier result: a file of bench -J, or a run's folder")
      .required();
  command.add_option("B", options->b, "The later result, of the same kind").required();
  options->keys.add_to(command);
  command
      .add_option("--threshold", options->threshold,
                  "Ignore changes that are smaller than PERCENT, even if they are certain")
      .type_name("PERCENT")
      .check(within(0.0, 1000.0));
  command
      .add_option("--false-alarms", options->false_alarms,
                  "Accept this probability that a comparison without any change reports one")
      .type_name("PERCENT")
      .check(within(0.001, 50.0));
  command.add_flag("--allow-unlike", options->allow_unlike,
                   "Compare results of different machines, environments or configurations");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme compare before.json after.json\n"
      "  trireme compare runs/monday runs/tuesday --threshold 5\n"
      "Exits with 0 if nothing has become slower, 4 if something has, and 2 if the results cannot "
      "be compared or no row has an answer, because all are undecided or cannot be judged. Rows "
      "that are undecided beside others with an answer do not change the exit code. A row is a "
      "regression if its samples differ "
      "significantly and the typical "
      "change is at least the threshold; docs/studies.md describes the statistics.");
  command.callback([options, &exit_code] { compare(*options, exit_code); });
}

}  // namespace trireme
