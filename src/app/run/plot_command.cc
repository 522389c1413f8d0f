#include "src/app/run/plot_command.h"

#include <cmath>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_lines.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/figures/line_plot.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

constexpr std::size_t kMostLabels = 12;  // more labels would overlap

struct PlotOptions {
  std::vector<std::string> runs;
  std::string out = "loss.svg";
  std::string title = "Loss";
  std::vector<std::string> events;
  std::vector<std::string> levels;
  bool json = false;
  KeyChoice keys;
};

// Parses a mark such as "120:killed" into {120, "killed"}.
PlotMark parse_mark(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::istringstream number(text.substr(0, colon));
  PlotMark mark;
  if (colon == std::string::npos || !(number >> mark.at) || !number.eof()) {
    throw ConfigError(fmt::format("'{}' is not NUMBER:LABEL, as in 120:killed", text));
  }
  mark.label = text.substr(colon + 1);
  return mark;
}

void add_point(PlotSeries& series, const nlohmann::json& line, const char* key) {
  const auto value = line.find(key);
  if (value != line.end()) {  // null means NaN or infinity, which leaves a gap
    series.x.push_back(line.value("step", 0.0));
    series.y.push_back(value->is_number() ? value->get<double>() : std::nan(""));
  }
}

void add_run(const std::filesystem::path& folder, const std::string& name, const TextReader& reader,
             LinePlot& plot) {
  const std::filesystem::path file = RunDirectory(folder).metrics();
  PlotSeries loss{name + "training", {}, {}};
  PlotSeries validation{name + "validation", {}, {}};
  const auto add_line = [&](const nlohmann::json& line) {
    const bool is_step = is_metrics_line(line);
    if (is_step) {
      add_point(loss, line, "loss");
      add_point(validation, line, "val_loss");
    }
    return is_step;
  };
  const DamagedLines damaged = use_objects(reader.read(file), add_line);
  warn_of(damaged, file);
  if (loss.x.empty() && (damaged.count > 0 || damaged.last_is_unfinished)) {
    throw DataError(fmt::format("{} is damaged: it has no whole line of a step", file.string()));
  }
  if (loss.x.empty()) {
    throw DataError(fmt::format("{} has no logged steps yet: wait until the run has logged some",
                                file.string()));
  }
  plot.series.push_back(std::move(loss));
  if (!validation.x.empty()) {
    plot.series.push_back(std::move(validation));
  }
}

// Adds the steps at which later starts resumed, according to a rank's log.
void add_resumed_steps(const std::filesystem::path& log, const TextReader& reader,
                       std::set<double>& steps) {
  if (!std::filesystem::exists(log)) {
    return;
  }
  (void)use_objects(reader.read(log), [&](const nlohmann::json& line) {
    if (line.value("event", nlohmann::json()) == "resumed" &&
        is_metrics_line(line)) {  // that is, it has a possible step
      steps.insert(line["step"].get<double>());
    }
    return true;
  });
}

// Adds a vertical line for each resume.
void add_restarts(const std::filesystem::path& folder, const std::string& name,
                  const TextReader& reader, LinePlot& plot) {
  std::set<double> steps;
  add_resumed_steps(older_log_file(folder / "logs", 0), reader, steps);
  add_resumed_steps(log_file(folder / "logs", 0), reader, steps);
  for (const double step : steps) {
    plot.events.push_back(
        {step, steps.size() <= kMostLabels ? fmt::format("{}restart at {:.0f}", name, step) : ""});
  }
}

nlohmann::ordered_json to_json(const LinePlot& plot, const std::string& file) {
  nlohmann::ordered_json series = nlohmann::ordered_json::array();
  for (const PlotSeries& each : plot.series) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < each.x.size(); ++i) {
      const bool finite = std::isfinite(each.y[i]);
      points.push_back({each.x[i], finite ? nlohmann::ordered_json(each.y[i]) : nullptr});
    }
    series.push_back({{"name", each.name}, {"points", points}});
  }
  return {{"schema", 1}, {"file", file}, {"series", series}};
}

void plot_runs(const PlotOptions& options) {
  if (std::filesystem::path(options.out).extension() != ".svg") {
    throw ConfigError(fmt::format("--out {}: the name of a figure must end in .svg", options.out));
  }
  LinePlot plot{options.title, "step", "nats per token", {}};
  const KeyedTextReader reader = options.keys.reader();
  for (const std::string& run : options.runs) {
    const std::string name = options.runs.size() == 1 ? "" : run + " ";
    add_run(run, name, reader, plot);
    add_restarts(run, name, reader, plot);
  }
  for (const std::string& event : options.events) {
    plot.events.push_back(parse_mark(event));
  }
  for (const std::string& level : options.levels) {
    plot.levels.push_back(parse_mark(level));
  }
  write_named_file(options.out, to_svg(plot));
  options.json ? print_json(to_json(plot, options.out))
               : fmt::print("{}\n", printable(options.out));
}

}  // namespace

void add_plot_command(CommandLine& app, const AccessSource& access) {
  CommandLine& command =
      app.add_command("plot", "Draw the losses of one or more runs as an SVG figure");
  const auto options = std::make_shared<PlotOptions>();
  command.add_option("RUN", options->runs, "The runs' folders (run.dir)").required();
  command.add_option("-o,--out", options->out, "Write the figure to FILE, which ends in .svg")
      .type_name("FILE");
  command.add_option("--title", options->title, "The figure's title");
  command
      .add_option("--event", options->events, "Mark a step with a vertical line; can be repeated")
      .one_value_per_use()
      .type_name("STEP:LABEL");
  command
      .add_option("--level", options->levels, "Mark a loss with a horizontal line; can be repeated")
      .one_value_per_use()
      .type_name("LOSS:LABEL");
  command.add_flag("--json", options->json, "Print the plotted points as JSON");
  options->keys.add_to(command);
  options->keys.access = access;
  command.footer(
      "Example:\n"
      "  trireme plot runs/demo/run --level 3.27:'unigram entropy' -o loss.svg");
  command.callback([options] { plot_runs(*options); });
}

}  // namespace trireme
