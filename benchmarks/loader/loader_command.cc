#include "benchmarks/loader/loader_command.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/loader/emulation.h"
#include "benchmarks/loader/loader.h"
#include "src/app/command/number_check.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

struct LoaderArguments {
  BenchLoaderOptions rates;
  EmulationOptions emulation;
  std::string data_bytes = "4G";
  bool must_pass = false;
  BenchOutput output;
  // The options of each of the two modes that the command line gives.
  std::vector<std::string> given_for_rates;
  std::vector<std::string> given_for_emulation;
};

// Returns a check that accepts every value and notes that the option was given.
Check noted_in(std::vector<std::string>& given, const std::string& option) {
  return {"", [&given, option](const std::string&) {
            given.push_back(option);
            return std::string();
          }};
}

// Throws ConfigError if an option of the other mode is given, which would be ignored.
void check_mode(const LoaderArguments& arguments) {
  const bool emulates = !arguments.emulation.workload.empty();
  std::vector<std::string> ignored =
      emulates ? arguments.given_for_rates : arguments.given_for_emulation;
  if (emulates ? arguments.rates.encrypt : arguments.must_pass) {
    ignored.emplace_back(emulates ? "--encrypt" : "--must-pass");
  }
  if (!ignored.empty()) {
    throw ConfigError(fmt::format("{} has no effect {} --emulate: leave it out", ignored.front(),
                                  emulates ? "with" : "without"));
  }
}

void run_emulation(const LoaderArguments& arguments, AppContext& context) {
  EmulationOptions options = arguments.emulation;
  options.duration = arguments.output.duration;
  options.data_bytes = parse_bytes(arguments.data_bytes);
  EmulationResult result;
  const auto measure = [&] {
    result = emulate_loader(options, context.session());
    return result.results;
  };
  const auto print = [&](const Json& results) {
    print_results(results);
    const double least = result.workload.least_utilization;
    fmt::print("loader: the accelerators compute {:.1f} % of the time: {} {:.0f} %\n",
               100 * result.utilization,
               result.utilization >= least ? "enough, at least" : "too little, they need",
               100 * least);
  };
  const auto finish = [&] {
    if (arguments.must_pass && result.utilization < result.workload.least_utilization) {
      context.exit_code = static_cast<int>(ExitCode::below_threshold);
    }
  };
  run_bench({.command = "loader", .measure = measure, .print = print, .finish = finish},
            arguments.output, context);
}

void run_loader(const LoaderArguments& arguments, AppContext& context) {
  check_mode(arguments);
  if (!arguments.emulation.workload.empty()) {
    run_emulation(arguments, context);
    return;
  }
  BenchLoaderOptions options = arguments.rates;
  options.duration = arguments.output.duration;
  const auto measure = [&] {
    return Json::array({bench_loader_json(options, bench_loader(options))});
  };
  run_bench({.command = "loader", .measure = measure, .print = print_results, .finish = {}},
            arguments.output, context);
}

void add_rates(CommandLine& command, LoaderArguments& arguments) {
  BenchLoaderOptions& options = arguments.rates;
  const auto noted = [&](const char* option) {
    return noted_in(arguments.given_for_rates, option);
  };
  command
      .add_option("--data", options.data,
                  "The dataset's folder (default: random bytes, packed for the measurement)")
      .check(noted("--data"))
      .type_name("DIR");
  command.add_flag("--encrypt", options.encrypt,
                   "Encrypt the random bytes with a key of their own");
  command.add_option("--sequence", options.sequence, "Tokens per sample")
      .check(positive_count())
      .check(noted("--sequence"));
  command.add_option("--micro-batch", options.micro_batch, "Samples read at a time")
      .check(positive_count())
      .check(noted("--micro-batch"));
  command.add_option("--shuffle", options.shuffle, "Order of the samples")
      .check(one_of({"block", "global", "none"}))
      .check(noted("--shuffle"));
  command.add_option("--threads", options.threads, "Threads of the loader")
      .check(thread_count())
      .check(noted("--threads"));
  command
      .add_option("--rounds", options.rounds,
                  "Timed rounds of the loader and of plain reads, alternating")
      .check(positive_count())
      .check(noted("--rounds"));
}

void add_emulation(CommandLine& command, LoaderArguments& arguments) {
  EmulationOptions& options = arguments.emulation;
  const auto noted = [&](const char* option) {
    return noted_in(arguments.given_for_emulation, option);
  };
  command
      .add_option("--emulate", options.workload,
                  "Instead: feed accelerators that run this workload of MLPerf Storage, one per "
                  "rank, and tell how much of the time they would compute")
      .check(one_of(workload_names()));
  command.add_option("--accelerator", options.accelerator, "The accelerator, with --emulate")
      .check(one_of({"h100", "a100"}))
      .check(noted("--accelerator"));
  command.add_option("--dir", options.folder, "Put the samples on the disk of DIR, with --emulate")
      .check(noted("--dir"))
      .type_name("DIR");
  command
      .add_option("--scale", options.scale,
                  "Multiply sizes and compute times by this; the bytes needed per second stay")
      .check(within(1e-6, 1.0))
      .check(noted("--scale"));
  command.add_option("--steps", options.steps, "Steps after the first one, with --emulate")
      .check(positive_count())
      .check(noted("--steps"));
  command
      .add_option("--data-bytes", arguments.data_bytes,
                  "About the size of all samples, but at most what --steps read, with --emulate")
      .check(noted("--data-bytes"))
      .type_name("BYTES");
  command
      .add_option("--read-threads", options.threads,
                  "Threads that read, per rank (default: the workload's)")
      .no_default()
      .check(thread_count())
      .check(noted("--read-threads"));
  command.add_flag("--must-pass", arguments.must_pass,
                   "Exit with 4 if the accelerators compute too little of the time");
}

}  // namespace

void add_loader_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "loader", "Time the data loader and compare it with plain reads, or feed accelerators");
  const auto arguments = std::make_shared<LoaderArguments>();
  add_rates(command, *arguments);
  add_emulation(command, *arguments);
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench loader -J loader.json\n"
      "  mpirun -n 2 trireme bench loader --emulate unet3d --dir /scratch --scale 0.1");
  command.callback([arguments, &context] { run_loader(*arguments, context); });
}

}  // namespace trireme
