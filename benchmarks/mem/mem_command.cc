#include "benchmarks/mem/mem_command.h"

#include <memory>
#include <string>

#include <fmt/core.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/mem/device_memory.h"
#include "benchmarks/mem/mem.h"
#include "benchmarks/per_node.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

struct MemArguments {
  std::string bytes;
  std::string device = "cpu";
  std::string test = "both";
  BenchOutput output;
};

std::int64_t wanted_bytes(const MemArguments& arguments) {
  const std::int64_t bytes = arguments.bytes.empty() ? 0 : parse_bytes(arguments.bytes);
  if (!arguments.bytes.empty() && bytes < 1) {
    throw ConfigError(
        fmt::format("--bytes {}: there must be something to measure", arguments.bytes));
  }
  return bytes;
}

NodeReport measure_node(const MemArguments& arguments, AppContext& context) {
  BenchMemOptions options;
  options.bytes = wanted_bytes(arguments);
  options.bandwidth = arguments.test != "latency";
  options.latency = arguments.test != "bandwidth";
  options.duration = arguments.output.duration;
  return on_each_node(context, SecondRank::refused, [&] {
    const BenchMemResult own = bench_mem(options);
    return NodeReport{own.results, own.text};
  });
}

// Each rank measures the GPU on which it computes, all at once.
NodeReport measure_gpus(const MemArguments& arguments, AppContext& context) {
  if (arguments.test == "latency") {
    throw ConfigError("--test latency measures the memory of the host: leave out --device");
  }
  const DeviceMemoryOptions options{.bytes = wanted_bytes(arguments),
                                    .duration = arguments.output.duration};
  const Device device = measured_device(arguments.device, context);
  if (device.kind != DeviceKind::cuda) {  // auto, on a node without GPUs
    return measure_node(arguments, context);
  }
  return on_each_rank(context, [&] {
    DeviceContext computing(device, 1);
    const BenchMemResult own = bench_device_memory(computing, options);
    return NodeReport{own.results, own.text};
  });
}

void run_mem(const MemArguments& arguments, AppContext& context) {
  NodeReport report;
  const auto measure = [&] {
    report = arguments.device == "cpu" ? measure_node(arguments, context)
                                       : measure_gpus(arguments, context);
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
                  "Size of each array (default: four times the last-level caches; on a GPU: 1 GiB)")
      .type_name("BYTES");
  command.add_option("--test", arguments->test, "What to measure")
      .check(one_of({"bandwidth", "latency", "both"}));
  add_device_option(command, arguments->device);
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  trireme bench mem -J mem.json\n"
      "  srun --mpi=pmix --ntasks-per-node=1 trireme bench mem -J mem.json\n"
      "  srun --mpi=pmix --ntasks-per-node=8 --gpus-per-task=1 \\\n"
      "    trireme bench mem --device cuda");
  command.callback([arguments, &context] { run_mem(*arguments, context); });
}

}  // namespace trireme
