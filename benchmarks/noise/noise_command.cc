#include "benchmarks/noise/noise_command.h"

#include <memory>
#include <string>

#include <fmt/core.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/noise/noise.h"
#include "benchmarks/per_node.h"

namespace trireme {
namespace {

struct NoiseArguments {
  std::string method = "both";
  BenchOutput output;
  BenchNoiseOptions rest;
};

}  // namespace

void add_noise_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("noise", "Measure what the operating system takes from each core");
  const auto arguments = std::make_shared<NoiseArguments>();
  command
      .add_option("--quantum", arguments->rest.quantum_us, "Length of a quantum of work or of time")
      .type_name("MICROSECONDS")
      .check(within(10.0, 1e6));
  command
      .add_option("--method", arguments->method,
                  "Time fixed work, count the work in fixed times, or both")
      .check(one_of({"work", "time", "both"}));
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench noise --duration 60 -J noise.json\n"
      "  srun --mpi=pmix --ntasks-per-node=1 trireme bench noise -J noise.json");
  command.callback([arguments, &context] {
    BenchNoiseOptions options = arguments->rest;
    options.fixed_work = arguments->method != "time";
    options.fixed_time = arguments->method != "work";
    if (arguments->output.duration > 0) {
      options.duration = arguments->output.duration;
    }
    NodeReport report;
    const auto measure = [&] {
      report = on_each_node(context, SecondRank::refused, [&] {
        const nlohmann::ordered_json own = bench_noise(options);
        return NodeReport{own, noise_text(own)};
      });
      return report.results;
    };
    run_bench({.command = "noise",
               .measure = measure,
               .print = [&](const auto&) { fmt::print("{}", report.text); },
               .finish = {}},
              arguments->output, context);
  });
}

}  // namespace trireme
