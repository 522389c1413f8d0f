#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/plan/plan_subcommands.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/parallel/pipeline/schedule_drawing.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;
constexpr std::int64_t kMostDrawn = 50'000;
constexpr double kMostTime = 1e6;

// Holds the arguments as typed. Times may be in any unit; they are those of one micro-batch in all
// chunks of a stage.
struct ScheduleOptions {
  std::string schedule = "1f1b";
  PipelineShape shape{4, 1, 8, false};
  StageCosts costs;
  double transfer = 0;
  double tie = 0.25;
  std::string svg;
  bool json = false;
};

void check_schedule_time(const char* flag, double value, bool may_be_zero) {
  if (!(value >= 1 / kMostTime || (may_be_zero && value == 0)) || !(value <= kMostTime)) {
    throw ConfigError(fmt::format("{} {}: expected a time from {}{} to {}", flag, value,
                                  may_be_zero ? "0 or " : "", 1 / kMostTime, kMostTime));
  }
}

void check_schedule_options(const ScheduleOptions& options) {
  check_schedule_time("--forward", options.costs.forward, false);
  check_schedule_time("--backward-input", options.costs.backward_input, false);
  check_schedule_time("--backward-weight", options.costs.backward_weight, false);
  check_schedule_time("--transfer", options.transfer, true);
  check_schedule_time("--tie", options.tie, true);
  const PipelineShape& shape = options.shape;
  const std::int64_t steps = shape.virtual_stages() * shape.micro_batches;
  const std::int64_t most = options.svg.empty() ? kMostSteps : kMostDrawn;
  if (steps > most) {
    throw ConfigError(
        fmt::format("stages {} x chunks {} x micro-batches {} = {} forward passes, but at most {} "
                    "are allowed{}",
                    shape.stages, shape.chunks, shape.micro_batches, steps, most,
                    options.svg.empty() ? "" : " in a figure"));
  }
  if (!options.svg.empty() && std::filesystem::path(options.svg).extension() != ".svg") {
    throw ConfigError(
        fmt::format("--schedule-svg {}: the name of a figure must end in .svg", options.svg));
  }
}

std::string schedule_title(const ScheduleOptions& options) {
  const PipelineShape& shape = options.shape;
  const auto counted = [](std::int64_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  std::string title =
      fmt::format("{}: {}, {}", options.schedule, counted(shape.stages, "stage", "stages"),
                  counted(shape.micro_batches, "micro-batch", "micro-batches"));
  title += shape.chunks > 1 ? fmt::format(", {} chunks per stage", shape.chunks) : "";
  title += shape.tied ? ", tied embeddings" : "";
  return title;
}

void print_schedule_table(const ScheduleOptions& options, const PipelineSimulation& simulation) {
  fmt::print("{}\n{:>5} {:>10} {:>10} {:>7} {:>12}\n", schedule_title(options), "stage", "busy",
             "idle", "idle %", "live at most");
  for (int stage = 0; stage < options.shape.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    fmt::print("{:>5} {:>10.6g} {:>10.6g} {:>7.1f} {:>12}\n", stage, simulation.busy[at],
               simulation.bubble(stage), 100 * simulation.bubble(stage) / simulation.seconds,
               simulation.peak_live[at]);
  }
  fmt::print("total time {:.6g}; bubble {:.1f} % of the time, {:.1f} % of the work\n",
             simulation.seconds, 100 * simulation.bubble_fraction(),
             100 * simulation.bubble_of_ideal());
}

nlohmann::ordered_json to_json(const ScheduleOptions& options,
                               const PipelineSimulation& simulation) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (int stage = 0; stage < options.shape.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    stages.push_back({{"stage", stage},
                      {"busy", simulation.busy[at]},
                      {"idle", simulation.bubble(stage)},
                      {"peak_live", simulation.peak_live[at]}});
  }
  return {{"schema", 1},
          {"schedule", options.schedule},
          {"stages", options.shape.stages},
          {"chunks", options.shape.chunks},
          {"micro_batches", options.shape.micro_batches},
          {"tied", options.shape.tied},
          {"time", simulation.seconds},
          {"bubble_fraction", simulation.bubble_fraction()},
          {"bubble_of_work", simulation.bubble_of_ideal()},
          {"by_stage", stages}};
}

void plan_schedule(const ScheduleOptions& options) {
  check_schedule_options(options);
  const double chunks = options.shape.chunks;
  const StageCosts each{options.costs.forward / chunks, options.costs.backward_input / chunks,
                        options.costs.backward_weight / chunks};
  PipelineCosts costs = equal_costs(options.shape, each, options.transfer);
  costs.tie = options.tie;
  const PipelineSchedule schedule = parse_pipeline_schedule(options.schedule);
  const PipelineSimulation simulation =
      simulate(make_schedules(schedule, options.shape), options.shape, costs);
  if (!options.svg.empty()) {
    write_named_file(options.svg, to_svg(simulation, options.shape, schedule_title(options)));
  }
  options.json ? print_json(to_json(options, simulation))
               : print_schedule_table(options, simulation);
}

void add_schedule_shape(CommandLine& command, ScheduleOptions& options) {
  command.add_option("--schedule", options.schedule, "The pipeline schedule")
      .check(one_of(pipeline_schedule_names()));
  command.add_option("--stages", options.shape.stages, "Pipeline stages of a replica")
      .check(integer_within(1, 4096));
  command
      .add_option("--chunks", options.shape.chunks,
                  "Virtual stages per rank, for the interleaved schedule")
      .check(integer_within(1, 1024));
  command
      .add_option("--micro-batches", options.shape.micro_batches,
                  "Micro-batches of a replica per step")
      .check(integer_within(1, kMostSteps));
  command.add_flag("--tied", options.shape.tied, "Tie the output matrix to the token embedding");
}

void add_schedule_times(CommandLine& command, ScheduleOptions& options) {
  command.add_option(
      "--forward", options.costs.forward,
      "Time of a stage for the forward pass of a micro-batch, in any unit; the other "
      "times are in the same unit");
  command.add_option("--backward-input", options.costs.backward_input,
                     "Time of a stage for the gradient of its input");
  command.add_option("--backward-weight", options.costs.backward_weight,
                     "Time of a stage for the gradients of its weights");
  command.add_option("--transfer", options.transfer,
                     "Time to send an activation to the next stage");
  command.add_option("--tie", options.tie, "Time of the last stage for a tied embedding");
}

}  // namespace

void add_plan_schedule_command(CommandLine& plan) {
  CommandLine& command = plan.add_command("schedule", "Simulate a pipeline schedule and draw it");
  const auto options = std::make_shared<ScheduleOptions>();
  command.add_option("--schedule-svg", options->svg, "Draw the schedule as an SVG figure")
      .type_name("FILE")
      .written();
  add_schedule_shape(command, *options);
  add_schedule_times(command, *options);
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme plan schedule --schedule interleaved --stages 4 --chunks 2 \\\n"
      "    --micro-batches 8 --schedule-svg interleaved.svg");
  command.callback([options] { plan_schedule(*options); });
}

}  // namespace trireme
