#include "benchmarks/mem/mem_command.h"

#include <memory>
#include <string>

#include <fmt/core.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/mem/mem.h"
#include "benchmarks/per_node.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

struct MemArguments {
  std::string bytes;
  std::string test = "both";
  BenchOutput output;
};

void run_mem(const MemArguments& arguments, AppContext& context) {
  BenchMemOptions options;
  options.bytes = arguments.bytes.empty() ? 0 : parse_bytes(arguments.bytes);
  if (!arguments.bytes.empty() && options.bytes < 1) {
    throw ConfigError(
        fmt::format("--bytes {}: there must be something to measure", arguments.bytes));
  }
  options.bandwidth = arguments.test != "latency";
  options.latency = arguments.test != "bandwidth";
  options.duration = arguments.output.duration;
  NodeReport report;
  const auto measure = [&] {
    report = on_each_node(context, SecondRank::refused, [&] {
      const BenchMemResult own = bench_mem(options);
      return NodeReport{own.results, own.text};
    });
    return report.results;
  };
  const auto finish = [&] {
    for (const auto& result : report.results) {
      const auto wrong = result.at("metrics").value("wrong", std::int64_t{0});
      if (wrong > 0) {
        throw DeviceError(fmt::format("{} of the arrays had a wrong value: test the memory of {}",
                                      counted(wrong, "element"),
                                      result.at("params").at("host").get<std::string>()));
      }
    }
  };
  const auto print = [&](const auto&) { fmt::print("{}", report.text); };
  run_bench({.command = "mem", .measure = measure, .print = print, .finish = finish},
            arguments.output, context);
}

}  // namespace

void add_mem_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "mem", "Measure the memory's bandwidth with STREAM's kernels, and its latency");
  const auto arguments = std::make_shared<MemArguments>();
  command
      .add_option("--bytes", arguments->bytes,
                  "Size of each of the three arrays (default: four times the last-level caches)")
      .type_name("BYTES");
  command.add_option("--test", arguments->test, "What to measure")
      .check(one_of({"bandwidth", "latency", "both"}));
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench mem -J mem.json\n"
      "  srun --ntasks-per-node=1 trireme bench mem -J mem.json");
  command.callback([arguments, &context] { run_mem(*arguments, context); });
}

}  // namespace trireme
