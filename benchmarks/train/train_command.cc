#include "benchmarks/train/train_command.h"

#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/train/train.h"
#include "src/app/command/number_check.h"
#include "src/app/command/written_files.h"
#include "src/base/error.h"
#include "src/train/run/config_files.h"

namespace trireme {
namespace {

struct TrainArguments {
  BenchTrainOptions rest;
  std::string config;
  MlLogOptions mllog{{}, "trireme", "trireme", "trireme"};
};

void check_outputs(const TrainArguments& arguments, const BenchOutput& output) {
  const ConfigSources sources{
      .file = arguments.config, .arguments = arguments.rest.arguments, .environment = environ};
  check_not_read({{"-J", output.json_file},
                  {"--csv", output.csv_file},
                  {"--openmetrics", output.openmetrics_file},
                  {"--mllog", arguments.mllog.file}},
                 files_of_config(sources, load_run_config(sources).config));
}

}  // namespace

void add_train_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "train", "Train for some steps of a configuration and tell where their time goes");
  const auto arguments = std::make_shared<TrainArguments>();
  BenchTrainOptions& options = arguments->rest;
  command.add_option("CONFIG", arguments->config, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options.arguments, "Configuration keys to override");
  command
      .add_option("--dir", options.folder,
                  "Put the run's files into a new folder in DIR, which is removed at the end")
      .type_name("DIR");
  command.add_option("--steps", options.steps, "Timed steps").check(positive_count());
  command.add_option("--warmup", options.warmup, "Steps before them")
      .check(integer_within(1, 1'000'000));
  command
      .add_option("--mllog", arguments->mllog.file, "Also write a log of MLPerf Training to FILE")
      .type_name("FILE")
      .written();
  command
      .add_option("--mllog-benchmark", arguments->mllog.benchmark,
                  "The name of the benchmark in this log")
      .type_name("NAME");
  command.add_option("--mllog-org", arguments->mllog.org, "The organization in this log")
      .type_name("NAME");
  command.add_option("--mllog-platform", arguments->mllog.platform, "The platform in this log")
      .type_name("NAME");
  command.footer(
      "Example:\n"
      "  mpirun -n 2 trireme bench train run.yaml --steps 50 -J train.json");
  const auto measure = [arguments, &context](const BenchOutput& output) {
    if (output.duration > 0) {
      throw ConfigError("bench train runs a fixed number of steps: use --steps, not --duration");
    }
    check_outputs(*arguments, output);
    BenchTrainOptions all = arguments->rest;
    all.config = arguments->config;
    if (!arguments->mllog.file.empty()) {
      check_output_file(arguments->mllog.file.string(), "--mllog");
      all.mllog = arguments->mllog;
    }
    return bench_train(all, context);
  };
  run_when_given(command, context, "train", measure).hidden();
}

}  // namespace trireme
