#include "src/report/run_section.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/report/line_figure.h"

namespace trireme {
namespace {

constexpr std::size_t kMostMarks = 12;  // labels of more restarts would overlap

std::vector<PlotMark> restart_marks(const RunFolder& run) {
  std::vector<PlotMark> marks;
  for (const double step : run.restarts) {
    marks.push_back({step, run.restarts.size() <= kMostMarks
                               ? fmt::format("restart at {:.0f}", step)
                               : std::string()});
  }
  return marks;
}

void add_figure(DocSection& section, const RunFolder& run, LineFigure what) {
  what.events = restart_marks(run);
  DocFigure figure = line_figure(what, run.metrics.step);
  if (figure.svg.empty()) {
    section.remarks.push_back(fmt::format("{}: metrics.jsonl has no such numbers.", what.heading));
  } else {
    section.figures.push_back(std::move(figure));
  }
}

double mean_of(const std::vector<double>& values, const std::vector<double>& weights) {
  double sum = 0;
  double weight = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && std::isfinite(weights[i])) {
      sum += weights[i] * values[i];
      weight += weights[i];
    }
  }
  return weight > 0 ? sum / weight : std::nan("");
}

// Returns the mean of a rate over the time of the steps.
double mean_rate(const RunColumns& metrics, std::string_view field) {
  return mean_of(metrics.of(field),
                 metrics.has("step_ms") ? metrics.step_seconds() : metrics.step_counts());
}

double least_of(const std::vector<double>& values) {
  double least = std::nan("");
  for (const double each : values) {
    least = std::isfinite(each) && !(each >= least) ? each : least;
  }
  return least;
}

double largest_of(const std::vector<double>& values) {
  double largest = std::nan("");
  for (const double each : values) {
    largest = std::isfinite(each) && !(each <= largest) ? each : largest;
  }
  return largest;
}

std::string with_unit(double value, std::string_view unit) {
  return std::isfinite(value) ? fmt::format("{} {}", number_text(value), unit) : "-";
}

// Returns the last loss that is a number. The newest line has none after a step whose loss was no
// number, and then the step of the one that is shown is said. `unit` may be empty.
std::string last_loss(const RunColumns& metrics, std::string_view field, std::string_view unit) {
  const std::optional<std::size_t> place = metrics.place_of_last(field);
  if (!place) {
    return "-";
  }
  std::string text = number_text(metrics.of(field)[*place]);
  text += unit.empty() ? "" : fmt::format(" {}", unit);
  return *place + 1 == metrics.step.size()
             ? text
             : fmt::format("{} at step {:.0f}; none at later steps", text, metrics.step[*place]);
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

// Returns the most bytes of a rank that any line has, or the report at the end of the run.
double most_memory(const RunFolder& run) {
  std::vector<double> bytes = {largest_of(run.metrics.of("memory_bytes"))};
  if (run.memory) {
    for (const std::vector<double>& parts : run.memory->bytes) {
      bytes.push_back(std::accumulate(parts.begin(), parts.end(), 0.0));
    }
  }
  return largest_of(bytes);
}

std::string restarts_text(const RunFolder& run) {
  if (!run.account) {
    return fmt::format("{} (as the log of rank 0 tells)", run.restarts.size());
  }
  const auto in_journal = std::max<std::int64_t>(std::ssize(run.account->attempts) - 1, 0);
  const std::int64_t in_log = run.restarts_in_log();
  return in_log > in_journal
             ? fmt::format("{} (as the log of rank 0 tells; the journal has {})", in_log,
                           in_journal)
             : fmt::format("{}{}", in_journal,
                           run.account->is_incomplete ? " (the journal is not complete)" : "");
}

DocTable overview(const RunFolder& run, const std::string& state) {
  const RunColumns& m = run.metrics;
  const double memory = most_memory(run);
  DocTable table{"The run at a glance", {"what", "value"}, {}};
  const auto add = [&](const char* what, std::string value) {
    table.rows.push_back({what, std::move(value)});
  };
  add("state", state.empty() ? "unknown" : state);
  if (!run.exit_reason.empty() && !run.is_done) {
    add("why it ended", run.exit_reason);
  }
  add("folder", run.path.string());
  add("last logged step", m.empty() ? "-" : fmt::format("{:.0f}", m.step.back()));
  add("last loss", last_loss(m, "loss_mean", "nats per token (mean since the line before)"));
  add("lowest validation loss", with_unit(least_of(m.of("val_loss")), "nats per token"));
  add("tokens", m.has("tokens") ? format_count(m.last("tokens")) : "-");
  add("mean throughput", with_unit(mean_rate(m, "tokens_per_s"), "tokens/s"));
  add("mean MFU", percent_text(mean_rate(m, "mfu")));
  add("most memory of a rank", std::isfinite(memory) ? format_bytes(std::llround(memory)) : "-");
  add("restarts", restarts_text(run));
  add("last line written", time_text(m.last("time")));
  return table;
}

}  // namespace

std::string time_text(double seconds) {
  constexpr double kLatest = 4e10;
  if (!(seconds > 0 && seconds < kLatest)) {
    return "-";
  }
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %T UTC", &parts)};
}

namespace {

constexpr std::size_t kMostLinesOfAFigure = kSeriesStyles;

// Adds what is known of the sources of a mixture, or of several validation sets: a figure of the
// first ones, and a table of all.
void add_named(DocSection& section, const RunFolder& run, std::string_view group,
               const std::string& heading) {
  const RunColumns& m = run.metrics;
  const std::vector<std::string> names = m.names_in(group);
  if (names.empty()) {
    return;
  }
  const bool is_source = group == "sources";
  const auto loss_of = [&](const std::string& name) {
    return fmt::format("{}/{}{}", group, name, is_source ? "/loss" : "");
  };
  LineFigure figure{heading, "nats per token", {}};
  DocTable table{heading, {"name", "last loss", "at step", "lowest loss"}, {}};
  if (is_source) {
    table.head.insert(table.head.end(), {"tokens", "epochs"});
  }
  for (const std::string& name : names) {
    const std::string field = loss_of(name);
    if (figure.lines.size() < kMostLinesOfAFigure) {
      figure.lines.push_back({name, m.of(field), 1, true});
    }
    const std::optional<std::size_t> place = m.place_of_last(field);
    table.rows.push_back({name, number_text(m.last(field)),
                          place ? fmt::format("{:.0f}", m.step[*place]) : "-",
                          number_text(least_of(m.of(field)))});
    if (is_source) {
      table.rows.back().push_back(format_count(m.last("sources/" + name + "/tokens")));
      table.rows.back().push_back(number_text(m.last("sources/" + name + "/epochs")));
    }
  }
  add_figure(section, run, figure);
  section.tables.push_back(std::move(table));
}

}  // namespace

DocSection training_part(const RunFolder& run) {
  const RunColumns& m = run.metrics;
  DocSection section;
  section.heading = "Training";
  add_figure(section, run,
             {"Loss",
              "nats per token",
              {{"training", m.of("loss")}, {"validation", m.of("val_loss"), 1, true}}});
  if (m.has("kl_divergence")) {
    add_figure(section, run,
               {"Parts of the loss with a teacher",
                "nats per token",
                {{"cross entropy with the data", m.of("cross_entropy")},
                 {"divergence from the teacher", m.of("kl_divergence")}}});
  }
  add_named(section, run, "sources", "Loss by source of the training data");
  add_named(section, run, "val_losses", "Loss by validation set");
  add_figure(section, run,
             {"Gradient norm", "norm before clipping", {{"norm", m.of("grad_norm")}}});
  add_figure(section, run, {"Learning rate", "learning rate", {{"learning rate", m.of("lr")}}});
  if (m.last("skipped_steps") > 0) {
    section.paragraphs.push_back(fmt::format(
        "The run left out {:.0f} updates because of a spike, an overflow or a loss that "
        "was no number.",
        m.last("skipped_steps")));
  }
  return section;
}

DocSection speed_part(const RunFolder& run) {
  const RunColumns& m = run.metrics;
  DocSection section;
  section.heading = "Throughput and memory";
  add_figure(section, run, {"Throughput", "tokens/s", {{"whole run", m.of("tokens_per_s")}}});
  add_figure(section, run,
             {"What rank 0 waited for",
              "ms per step",
              {{"other replicas", m.of("comm_exposed_ms")},
               {"tensor-parallel group", m.of("tensor_wait_ms")},
               {"pipeline stages", m.of("pipeline_wait_ms")},
               {"data", m.of("data_wait_ms")},
               {"saves", m.of("checkpoint_stall_ms")},
               {"whole step", m.of("step_ms")}}});
  constexpr double kGib = 1.0 / (1 << 30);
  add_figure(section, run,
             {"Memory", "GiB", {{"rank that uses the most", m.of("memory_bytes"), kGib}}});
  return section;
}

DocSection provenance_part(const RunFolder& run) {
  DocSection section;
  section.heading = "Provenance";
  DocTable table{"What the log of rank 0 says about its latest start", {"what", "value"}, {}};
  if (!run.metrics.device.empty()) {
    table.rows.push_back({"device", run.metrics.device});
  }
  for (const auto& [name, value] : run.facts) {
    table.rows.push_back({name, value});
  }
  if (table.rows.empty()) {
    section.remarks.emplace_back(
        "There is no log of rank 0, so its hosts and layout are not known.");
  } else {
    section.tables.push_back(std::move(table));
  }
  section.text_heading = "Configuration of the run, with the origin of each value (config.yaml)";
  section.text = run.config;
  return section;
}

DocSection run_section(const RunFolder& run, const std::string& state) {
  DocSection section;
  section.heading = "Run " + run.name;
  section.remarks = run.remarks;
  section.tables.push_back(overview(run, state));
  if (!run.metrics.empty()) {
    section.parts.push_back(training_part(run));
    section.parts.push_back(speed_part(run));
  }
  if (run.forecast) {
    section.parts.push_back(forecast_part(run));
  }
  section.parts.push_back(ranks_part(run));
  section.parts.push_back(goodput_part(run));
  section.parts.push_back(energy_part(run));
  section.parts.push_back(provenance_part(run));
  return section;
}

void tell_apart(std::vector<RunFolder>& runs) {
  std::map<std::string, int> count;
  for (const RunFolder& run : runs) {
    ++count[run.name];
  }
  for (RunFolder& run : runs) {
    if (count[run.name] > 1) {
      run.name += fmt::format(" ({})", run.path.string());
    }
  }
}

DocSection comparison_section(const std::vector<RunFolder>& runs) {
  constexpr std::size_t kMostLines = kSeriesStyles;
  DocSection section;
  section.heading = "Comparison of the runs";
  DocTable table{
      "The runs side by side",
      {"run", "last step", "last loss", "lowest validation loss", "mean tokens/s", "goodput"},
      {}};
  LinePlot plot{"", "step", "nats per token", {}};
  for (const RunFolder& run : runs) {
    const RunColumns& m = run.metrics;
    table.rows.push_back({run.name, m.empty() ? "-" : fmt::format("{:.0f}", m.step.back()),
                          last_loss(m, "loss_mean", ""), number_text(least_of(m.of("val_loss"))),
                          number_text(mean_rate(m, "tokens_per_s")),
                          run.account ? percent_text(run.account->effective_ratio()) +
                                            (run.account->is_incomplete ? " (incomplete)" : "")
                                      : percent_text(useful_share(m)) + " (no journal)"});
    if (m.has("loss") && plot.series.size() < kMostLines) {
      plot.series.push_back({run.name, m.step, m.of("loss")});
    }
  }
  if (!plot.series.empty()) {
    section.figures.push_back({"Losses of the runs",
                               fmt::format("Training loss over the steps of {}.",
                                           counted(std::ssize(plot.series), "run")),
                               to_svg(plot), "", table});
  } else {
    section.tables.push_back(table);
  }
  section.paragraphs.emplace_back(
      "Goodput is the share of the time of all launches that went into steps that count and into "
      "evaluations. Without a journal, it is that of the time from the first to the last logged "
      "step, which knows nothing of starts and faults.");
  if (runs.size() > kMostLines) {
    section.remarks.push_back(fmt::format("The figure shows the first {} runs.", kMostLines));
  }
  return section;
}

}  // namespace trireme
