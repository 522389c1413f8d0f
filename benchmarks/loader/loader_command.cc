#include "benchmarks/loader/loader_command.h"

#include <memory>

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
};

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

void add_emulation(CommandLine& command, LoaderArguments& arguments) {
  EmulationOptions& options = arguments.emulation;
  command
      .add_option("--emulate", options.workload,
                  "Instead: feed accelerators that run this workload of MLPerf Storage, one per "
                  "rank, and tell how much of the time they would compute")
      .check(one_of(workload_names()));
  command.add_option("--accelerator", options.accelerator, "The accelerator, with --emulate")
      .check(one_of({"h100", "a100"}));
  command.add_option("--dir", options.folder, "Put the samples on the disk of DIR, with --emulate")
      .type_name("DIR");
  command
      .add_option("--scale", options.scale,
                  "Multiply sizes and compute times by this; the bytes needed per second stay")
      .check(within(1e-6, 1.0));
  command.add_option("--steps", options.steps, "Steps after the first one, with --emulate")
      .check(positive_count());
  command
      .add_option("--data-bytes", arguments.data_bytes,
                  "About the size of all samples, but at most what --steps read, with --emulate")
      .type_name("BYTES");
  command
      .add_option("--read-threads", options.threads,
                  "Threads that read, per rank (default: the workload's)")
      .no_default()
      .check(thread_count());
  command.add_flag("--must-pass", arguments.must_pass,
                   "Exit with 4 if the accelerators compute too little of the time");
}

}  // namespace

void add_loader_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "loader", "Time the data loader and compare it with plain reads, or feed accelerators");
  const auto arguments = std::make_shared<LoaderArguments>();
  BenchLoaderOptions& options = arguments->rates;
  command
      .add_option("--data", options.data,
                  "The dataset's folder (default: random bytes, packed for the measurement)")
      .type_name("DIR");
  command.add_flag("--encrypt", options.encrypt,
                   "Encrypt the random bytes with a key of their own");
  command.add_option("--sequence", options.sequence, "Tokens per sample").check(positive_count());
  command.add_option("--micro-batch", options.micro_batch, "Samples read at a time")
      .check(positive_count());
  command.add_option("--shuffle", options.shuffle, "Order of the samples")
      .check(one_of({"block", "global", "none"}));
  command.add_option("--threads", options.threads, "Threads of the loader").check(thread_count());
  command
      .add_option("--rounds", options.rounds,
                  "Timed rounds of the loader and of plain reads, alternating")
      .check(positive_count());
  add_emulation(command, *arguments);
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench loader -J loader.json\n"
      "  mpirun -n 2 trireme bench loader --emulate unet3d --dir /scratch --scale 0.1");
  command.callback([arguments, &context] { run_loader(*arguments, context); });
}

}  // namespace trireme
