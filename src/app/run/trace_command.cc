#include "src/app/run/trace_command.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/trace/trace_summary.h"

namespace trireme {
namespace {

struct TraceOptions {
  std::string folder;
  bool json = false;
  KeyChoice keys;
};

constexpr double kMilliseconds = 1e3;

StepPart part_at(std::size_t at) { return static_cast<StepPart>(at); }

// Turns "exposed tp" into "exposed_tp_ms".
std::string json_name(std::size_t part) {
  std::string name(name_of(part_at(part)));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + "_ms";
}

nlohmann::ordered_json to_json(const StepTimes& times) {
  nlohmann::ordered_json json = {{"t_iter_ms", kMilliseconds * times.step}};
  for (std::size_t part = 0; part < kStepParts; ++part) {
    json[json_name(part)] = kMilliseconds * times.parts[part];
  }
  json["sum_ms"] = kMilliseconds * times.sum();
  json["checkpoint_ms"] = kMilliseconds * times.checkpoint;
  json["evaluation_ms"] = kMilliseconds * times.evaluation;
  return json;
}

nlohmann::ordered_json to_json(const RankSummary& rank) {
  const TraceHeader& h = rank.header;
  nlohmann::ordered_json json = {{"rank", h.rank},   {"host", h.host},   {"device", h.device},
                                 {"dp", h.place.dp}, {"tp", h.place.tp}, {"pp", h.place.pp}};
  json.update(to_json(rank.mean));
  json["compute_median_ms"] = kMilliseconds * rank.compute_seconds;
  json["slowness"] = rank.slowness.of_peers;
  json["score"] = rank.slowness.score;
  json["straggler"] = rank.slowness.straggles;
  json["clock_uncertainty_us"] = static_cast<double>(h.clock_uncertainty_ns) / 1e3;
  json["dropped_events"] = h.dropped;
  return json;
}

nlohmann::ordered_json to_json(const TraceSummary& summary) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  nlohmann::ordered_json stragglers = nlohmann::ordered_json::array();
  for (const RankSummary& rank : summary.ranks) {
    ranks.push_back(to_json(rank));
    if (rank.slowness.straggles) {
      stragglers.push_back({{"rank", rank.header.rank}, {"host", rank.header.host}});
    }
  }
  return {{"schema", 1},
          {"steps", summary.steps},
          {"mean", to_json(summary.mean)},
          {"ranks", ranks},
          {"stragglers", stragglers}};
}

// Formats a value in at most seven characters, so that the table fits 80 columns.
std::string cell(double value) {
  return fmt::format(" {:>7}", fmt::format("{:.{}f}", value,
                                           value < 999.9 ? 3
                                           : value < 1e5 ? 1
                                                         : 0));
}

void print_row(const std::string& name, const StepTimes& times) {
  std::string row = fmt::format("{:<8}", name);
  for (const double part : times.parts) {
    row += cell(kMilliseconds * part);
  }
  fmt::print("{}{}\n", row, cell(kMilliseconds * times.step));
}

void print_shares(const StepTimes& times) {
  const double whole = times.step > 0 ? times.step : 1;
  fmt::print("{:<8}", "percent");
  for (const double part : times.parts) {
    fmt::print(" {:>7.1f}", 100 * part / whole);
  }
  fmt::print(" {:>7.1f}\n", 100 * times.sum() / whole);
  if (times.checkpoint + times.evaluation > 0) {
    fmt::print("other includes {:.3f} ms of checkpoint and {:.3f} ms of evaluation\n",
               kMilliseconds * times.checkpoint, kMilliseconds * times.evaluation);
  }
}

// Returns the heading of a column: the name of a part, shortened to at most seven characters.
std::string_view heading_of(StepPart part) {
  constexpr std::string_view kExposed = "exposed ";
  std::string_view name = name_of(part);
  name.remove_prefix(name.starts_with(kExposed) ? kExposed.size() : 0);
  return part == StepPart::optimizer ? name.substr(0, 5) : name;
}

void print_table(const TraceSummary& summary) {
  const TracePlace& grid = summary.ranks.front().header.grid;
  std::int64_t uncertainty = 0;
  std::int64_t dropped = 0;
  for (const RankSummary& rank : summary.ranks) {
    uncertainty = std::max(uncertainty, rank.header.clock_uncertainty_ns);
    dropped = std::max(dropped, rank.header.dropped);
  }
  fmt::print("steps {}; {}, dp {} x tp {} x pp {}; clocks agree within {:.1f} us\n",
             fmt::join(summary.steps, ", "), counted(std::ssize(summary.ranks), "rank"), grid.dp,
             grid.tp, grid.pp, static_cast<double>(uncertainty) / 1e3);
  if (dropped > 0) {
    fmt::print("the trace is incomplete: up to {} per rank did not fit into memory\n",
               counted(dropped, "event"));
  }
  fmt::print("milliseconds per step; tp, dp and pp: exposed communication\n{:<8}", "rank");
  for (std::size_t part = 0; part < kStepParts; ++part) {
    fmt::print(" {:>7}", heading_of(part_at(part)));
  }
  fmt::print(" {:>7}\n", "t_iter");
  for (const RankSummary& rank : summary.ranks) {
    print_row(fmt::format("rank {}", rank.header.rank), rank.mean);
  }
  print_row("mean", summary.mean);
  print_shares(summary.mean);
}

// The peers of a rank are the other ranks of its stage.
void print_stragglers(const TraceSummary& summary) {
  bool found = false;
  for (const RankSummary& rank : summary.ranks) {
    if (rank.slowness.straggles) {
      found = true;
      fmt::print(
          "straggler: rank {} on {}: computes {:.1f} ms, {:.1f} times its peers (z-score {:.1f})\n",
          rank.header.rank, printable(rank.header.host), kMilliseconds * rank.compute_seconds,
          rank.slowness.of_peers, rank.slowness.score);
    }
  }
  const TracePlace& grid = summary.ranks.front().header.grid;
  const bool comparable = grid.dp * grid.tp > 1 && summary.ranks.size() > 2;
  if (!found) {
    fmt::print("{}\n", comparable ? "no stragglers"
                                  : "stragglers: too few ranks do the same work to compare them");
  }
}

void summarize_folder(const TraceOptions& options) {
  const TraceSummary summary = summarize(read_traces(options.folder, options.keys.reader()));
  if (options.json) {
    print_json(to_json(summary));
    return;
  }
  print_table(summary);
  print_stragglers(summary);
}

}  // namespace

void add_trace_command(CommandLine& app, const AccessSource& access) {
  CommandLine& command = app.add_command("trace", "Analyse the steps that run.trace recorded");
  command.require_command();
  command.footer("Example:\n  trireme trace summary runs/first");
  CommandLine& summary =
      command.add_command("summary", "Show where the time of the traced steps went, by rank");
  const auto options = std::make_shared<TraceOptions>();
  summary.add_option("DIR", options->folder, "The run's folder, or its folder trace/").required();
  summary.add_flag("--json", options->json, "Print JSON");
  options->keys.add_to(summary);
  options->keys.access = access;
  summary.footer(
      "Example:\n"
      "  trireme train run.yaml run.trace=5\n"
      "  trireme trace summary runs/first\n"
      "Perfetto (ui.perfetto.dev) also opens the files in trace/; of an encrypted run, those that "
      "`trireme log` has printed.");
  summary.callback([options] { summarize_folder(*options); });
}

}  // namespace trireme
