#include "src/app/plot_command.h"

#include <cmath>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/line_plot.h"
#include "src/base/log.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

constexpr std::size_t kMostLabels = 12;  // more would hide each other

struct PlotOptions {
  std::vector<std::string> runs;
  std::string out = "loss.svg";
  std::string title = "Loss";
  std::vector<std::string> events;
  std::vector<std::string> levels;
};

// "120:killed" -> {120, "killed"}.
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
  if (value != line.end()) {  // null is NaN or infinity: a gap
    series.x.push_back(line.value("step", 0.0));
    series.y.push_back(value->is_number() ? value->get<double>() : std::nan(""));
  }
}

// Lines that are torn or foreign are passed over: a log is read for what it has.
void add_run(const std::filesystem::path& folder, const std::string& name, LinePlot& plot) {
  const std::filesystem::path file = RunDirectory(folder).metrics();
  std::istringstream lines(read_file(file));
  PlotSeries loss{name + "training", {}, {}};
  PlotSeries validation{name + "validation", {}, {}};
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line.contains("step") && line["step"].is_number()) {
      add_point(loss, line, "loss");
      add_point(validation, line, "val_loss");
    }
  }
  if (loss.x.empty()) {
    throw DataError(fmt::format("{} holds no steps yet: let the run log some", file.string()));
  }
  plot.series.push_back(std::move(loss));
  if (!validation.x.empty()) {
    plot.series.push_back(std::move(validation));
  }
}

// A vertical line at every step from which a later start went on, as rank 0's log tells it.
void add_restarts(const std::filesystem::path& folder, const std::string& name, LinePlot& plot) {
  const std::filesystem::path file = log_file(folder / "logs", 0);
  if (!std::filesystem::exists(file)) {
    return;
  }
  std::istringstream lines(read_file(file));
  std::set<double> steps;
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line.value("event", nlohmann::json()) == "resumed" &&
        line.contains("step") && line["step"].is_number()) {
      steps.insert(line["step"].get<double>());
    }
  }
  for (const double step : steps) {
    plot.events.push_back(
        {step, steps.size() <= kMostLabels ? fmt::format("{}restart at {:.0f}", name, step) : ""});
  }
}

void plot_runs(const PlotOptions& options) {
  if (std::filesystem::path(options.out).extension() != ".svg") {
    throw ConfigError(
        fmt::format("--out {}: the figure is SVG: --out must end in .svg", options.out));
  }
  LinePlot plot{options.title, "step", "nats a token", {}};
  for (const std::string& run : options.runs) {
    const std::string name = options.runs.size() == 1 ? "" : run + " ";
    add_run(run, name, plot);
    add_restarts(run, name, plot);
  }
  for (const std::string& event : options.events) {
    plot.events.push_back(parse_mark(event));
  }
  for (const std::string& level : options.levels) {
    plot.levels.push_back(parse_mark(level));
  }
  write_file_durably(options.out, to_svg(plot));
  fmt::print("{}\n", options.out);
}

}  // namespace

void add_plot_command(CommandLine& app) {
  CommandLine& command = app.add_command("plot", "Draw the losses of runs as an SVG figure");
  const auto options = std::make_shared<PlotOptions>();
  command.add_option("RUN", options->runs, "run directories").required();
  command.add_option("-o,--out", options->out, "the figure").show_default();
  command.add_option("--title", options->title, "above the figure").show_default();
  command.add_option("--event", options->events, "a vertical line: STEP:LABEL").one_value_a_use();
  command.add_option("--level", options->levels, "a horizontal line: NATS:LABEL").one_value_a_use();
  command.footer(
      "Example:\n"
      "  trireme plot runs/demo/run --level 3.27:'unigram entropy' -o loss.svg");
  command.callback([options] { plot_runs(*options); });
}

}  // namespace trireme
