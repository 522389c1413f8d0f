// The parts of a run's section about its time: per rank, over attempts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/figures/bar_plot.h"
#include "src/report/line_figure.h"
#include "src/report/run_section.h"
#include "src/report/stacked_figure.h"

namespace trireme {
namespace {

constexpr std::size_t kMostRows = 128;  // of a bar plot

std::string share_text(double part, double whole) {
  return whole > 0 && std::isfinite(part) ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

void add_trace(DocSection& section, const TraceSummary& trace) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kStepParts; ++i) {
    parts.emplace_back(name_of(static_cast<StepPart>(i)));
  }
  std::vector<std::string> labels;
  std::vector<std::vector<double>> values;
  std::string slow;
  for (const RankSummary& rank : trace.ranks) {
    labels.push_back(fmt::format("{} on {}", rank.header.rank, rank.header.host));
    std::vector<double> ms;
    for (const double seconds : rank.mean.parts) {
      ms.push_back(1e3 * seconds);
    }
    values.push_back(std::move(ms));
    if (rank.slowness.straggles) {
      slow +=
          fmt::format("{}rank {} on {} ({:.2f} times its peers' time)", slow.empty() ? "" : ", ",
                      rank.header.rank, rank.header.host, rank.slowness.of_peers);
    }
  }
  section.figures.push_back(
      stacked_figure({"Time of a step, by rank", "ms", "rank", labels, parts, values}));
  section.paragraphs.push_back(fmt::format(
      "The trace has {} of all ranks. {}", counted(std::ssize(trace.steps), "step"),
      slow.empty() ? "No rank computes more slowly than its peers." : "Stragglers: " + slow + "."));
}

// What an attempt does at a time: the categories of the timeline.
constexpr std::size_t kStarting = 0;
constexpr std::size_t kUndetected = 1;
constexpr std::size_t kAtWork = 2;

// Returns a row for an attempt, on the scale of `unit_seconds` since `origin`.
BarRow attempt_row(const RunAttempt& attempt, const AttemptAccount& account, double origin,
                   double unit_seconds) {
  const auto place = [&](double time) { return (time - origin) / unit_seconds; };
  const double end = attempt.ended.value_or(attempt.began + account.seconds);
  const double ready = std::min(attempt.began + account.ranks_up + account.load, end);
  const double alive = std::max(end - account.detect, ready);
  BarRow row{fmt::format("attempt {}", account.number), {}};
  const auto add = [&](double from, double to, std::size_t category, const char* name) {
    if (to > from) {
      row.pieces.push_back(
          {place(from), place(to), category,
           fmt::format("attempt {}: {} for {}", account.number, name, format_seconds(to - from))});
    }
  };
  add(attempt.began, ready, kStarting, "starting and loading");
  add(ready, alive, kAtWork, "at work");
  add(alive, end, kUndetected, "the fault was not yet detected");
  return row;
}

void add_timeline(DocSection& section, const RunFolder& run) {
  constexpr double kHour = 3600;
  const Account& account = *run.account;
  if (run.attempts.empty()) {
    return;
  }
  const bool in_hours = account.wall > 2 * kHour;
  BarPlot plot{in_hours ? "hours since the first launch" : "seconds since the first launch",
               {"starting and loading", "fault undetected", "at work"},
               {}};
  DocFigure figure;
  figure.heading = "Timeline of attempts";
  figure.table = {"Attempts and why they ended",
                  {"attempt", "began", "lasted", "steps", "ended by", "what happened"},
                  {}};
  for (std::size_t i = 0; i < run.attempts.size(); ++i) {
    const AttemptAccount& each = account.attempts[i];
    if (plot.rows.size() < kMostRows) {
      plot.rows.push_back(
          attempt_row(run.attempts[i], each, run.journal_began, in_hours ? kHour : 1));
    }
    figure.table.rows.push_back(
        {fmt::format("{}{}", each.number,
                     account.launches > 1 ? fmt::format(" of launch {}", each.launch_number) : ""),
         time_text(run.attempts[i].began), format_seconds(each.seconds),
         each.from_step < 0 ? "-" : fmt::format("{} to {}", each.from_step, each.to_step),
         each.cause.empty() ? "unknown" : each.cause, each.what.empty() ? "-" : each.what});
  }
  figure.summary = fmt::format("{} of the ranks in {}, of which {} ended by a fault.",
                               counted(std::ssize(run.attempts), "start"),
                               counted(account.launches, "launch"), account.failures);
  figure.svg = to_svg(plot);
  section.figures.push_back(std::move(figure));
}

void add_account(DocSection& section, const Account& account) {
  DocTable table{
      "Where the time went, from the first launch to the last", {"cause", "seconds", "share"}, {}};
  for (std::size_t i = 0; i < kTimeCauses; ++i) {
    table.rows.push_back({std::string(name_of(static_cast<TimeCause>(i))),
                          number_text(account.seconds.at(i)),
                          share_text(account.seconds.at(i), account.wall)});
  }
  table.rows.push_back({"all", number_text(account.wall), share_text(account.wall, account.wall)});
  section.tables.push_back(std::move(table));
  section.paragraphs.push_back(
      fmt::format("Goodput: {} of the time went into steps that count and into evaluations. There "
                  "{} {} and {}.",
                  share_text(account.effective_ratio(), 1), account.launches == 1 ? "was" : "were",
                  counted(account.launches, "launch"), counted(account.failures, "fault")));
}

// Returns the sum over all steps of values per step, and how many steps have one.
struct StepSum {
  double sum = 0;
  double steps = 0;
  double tokens = 0;  // in these steps; 0 if unknown
};
StepSum sum_of(const RunColumns& metrics, std::string_view field) {
  StepSum total;
  const std::vector<double>& values = metrics.of(field);
  const std::vector<double> counts = metrics.step_counts();
  const std::vector<double> seconds = metrics.step_seconds();
  const std::vector<double>& rates = metrics.of("tokens_per_s");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      total.sum += counts[i] * values[i];
      total.steps += counts[i];
      total.tokens += seconds[i] * rates[i];
    }
  }
  total.tokens = std::isfinite(total.tokens) ? total.tokens : 0;
  return total;
}

double mean_of_lines(const std::vector<double>& values) {
  double sum = 0;
  double lines = 0;
  for (const double each : values) {
    sum += std::isfinite(each) ? each : 0;
    lines += std::isfinite(each) ? 1 : 0;
  }
  return lines > 0 ? sum / lines : std::nan("");
}

}  // namespace

double useful_share(const RunColumns& metrics) {
  const std::vector<double> counts = metrics.step_counts();
  const std::vector<double>& ms = metrics.of("step_ms");
  const std::vector<double>& stall = metrics.of("checkpoint_stall_ms");
  const std::vector<double>& time = metrics.of("time");
  double useful = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    const double net = ms[i] - (std::isfinite(stall[i]) ? stall[i] : 0);
    useful += std::isfinite(net) ? 1e-3 * counts[i] * std::max(net, 0.0) : 0;
  }
  if (metrics.empty() || !std::isfinite(time.front()) || !std::isfinite(ms.front())) {
    return std::nan("");
  }
  const double wall = metrics.last("time") - time.front() + 1e-3 * counts.front() * ms.front();
  return wall > 0 ? std::min(useful / wall, 1.0) : std::nan("");
}

DocSection ranks_part(const RunFolder& run) {
  DocSection section;
  section.heading = "Ranks";
  if (run.trace) {
    add_trace(section, *run.trace);
  } else {
    section.remarks.emplace_back(
        "There is no trace, so the time of each rank is not known. run.trace=10 traces ten steps.");
  }
  if (run.memory) {
    constexpr double kPerMib = 1.0 / (1 << 20);
    std::vector<std::string> labels;
    std::vector<std::vector<double>> mib = run.memory->bytes;
    for (std::size_t rank = 0; rank < mib.size(); ++rank) {
      labels.push_back(fmt::format("rank {}", rank));
      std::for_each(mib[rank].begin(), mib[rank].end(), [](double& each) { each *= kPerMib; });
    }
    section.figures.push_back(
        stacked_figure({"Peak memory, by rank", "MiB", "rank", labels, run.memory->parts, mib}));
  } else {
    section.remarks.emplace_back(
        "The log of rank 0 does not tell the memory of each rank: it is missing or damaged, or the "
        "run has not ended in order.");
  }
  if (!run.warnings.empty()) {
    DocTable table{"Stragglers and steps that stood out", {"time", "what"}, {}};
    for (const RunFault& each : run.warnings) {
      table.rows.push_back({time_text(each.time), each.what});
    }
    section.tables.push_back(std::move(table));
  }
  return section;
}

DocSection goodput_part(const RunFolder& run) {
  DocSection section;
  section.heading = "Goodput and faults";
  if (run.account) {
    if (run.account->is_incomplete) {
      section.remarks.emplace_back(
          "journal.jsonl is damaged or lacks events, so that attempts, faults and times may be "
          "missing from this account.");
    }
    add_account(section, *run.account);
    add_timeline(section, run);
    return section;
  }
  section.remarks.emplace_back(
      run.journal == JournalFile::empty
          ? "journal.jsonl has no whole line, so that the faults and where the time went are not "
            "known."
      : run.journal == JournalFile::unusable
          ? "journal.jsonl cannot be used, so that the faults and where the time went are not "
            "known."
          : "There is no journal.jsonl: the run was not started by trireme launch, which records "
            "faults and where the time went, or the file is gone.");
  const double share = useful_share(run.metrics);
  if (std::isfinite(share)) {
    section.paragraphs.push_back(fmt::format(
        "As metrics.jsonl tells, {} of the time from the first to the last logged step went into "
        "steps that count.",
        share_text(share, 1)));
  }
  return section;
}

// Returns energy.currency of config.yaml, as in "EUR".
std::string currency_of(const RunFolder& run) {
  for (const ConfigEntry& entry : run.settings) {
    if (entry.key == "energy.currency" && entry.value.kind == ConfigValue::Kind::scalar) {
      return entry.value.items.front();
    }
  }
  return "(in the site's currency, which config.yaml does not tell)";
}

DocSection energy_part(const RunFolder& run) {
  const RunColumns& m = run.metrics;
  DocSection section;
  section.heading = "Energy";
  DocTable table{"Energy of the logged steps",
                 {"of", "kWh", "J per step", "J per token", "J per checkpoint", "steps counted"},
                 {}};
  constexpr double kJoulesPerKwh = 3.6e6;
  for (const std::string unit : {"cpu", "gpu"}) {
    const StepSum all = sum_of(m, unit + "_joules_per_step");
    if (all.steps > 0) {
      table.rows.push_back({unit == "cpu" ? "processors (RAPL)" : "GPUs (NVML)",
                            number_text(all.sum / kJoulesPerKwh), number_text(all.sum / all.steps),
                            number_text(all.tokens > 0 ? all.sum / all.tokens : std::nan("")),
                            number_text(mean_of_lines(m.of(unit + "_joules_per_checkpoint"))),
                            fmt::format("{:.0f}", all.steps)});
    }
  }
  if (table.rows.empty()) {
    section.remarks.emplace_back(
        std::string("No energy was measured: metrics.jsonl has no joules. ") +
        (run.facts.empty() ? ""
                           : "If a counter could not be read, the log of rank 0 names it (\"energy "
                             "is not counted\"). ") +
        "Nothing is estimated.");
    return section;
  }
  section.tables.push_back(std::move(table));
  const StepSum carbon = sum_of(m, "co2_grams_per_step");
  const StepSum price = sum_of(m, "price_per_step");
  if (carbon.steps > 0) {
    section.paragraphs.push_back(
        fmt::format("Carbon dioxide by the site's factor: {} g.", number_text(carbon.sum)));
  }
  if (price.steps > 0) {
    section.paragraphs.push_back(fmt::format("Price by the site's tariff: {} {}.",
                                             number_text(price.sum), currency_of(run)));
  }
  DocFigure figure = line_figure(
      {"Energy per step",
       "J",
       {{"processors", m.of("cpu_joules_per_step")}, {"GPUs", m.of("gpu_joules_per_step")}}},
      m.step);
  section.figures.push_back(std::move(figure));
  return section;
}

}  // namespace trireme
