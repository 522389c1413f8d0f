#include "benchmarks/gemm/gemm_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/gemm/gemm.h"
#include "src/app/command/number_check.h"
#include "src/base/config_binder.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_config_checks.h"

namespace trireme {
namespace {

constexpr int kLargestSize = 1 << 17;

struct GemmArguments {
  std::vector<int> sizes;
  std::string baseline;
  double at_least = 0;  // percent; 0 for no demand
  std::string device = "cpu";
  BenchOutput output;
  BenchGemmOptions rest;
};

// Returns the baseline that was named, or that of this node if it has one.
std::optional<Measures> load_node_baseline(const std::string& named) {
  const std::filesystem::path path =
      named.empty() ? site_folder() / "node.baseline" : std::filesystem::path(named);
  if (named.empty() && !std::filesystem::exists(path)) {
    return std::nullopt;
  }
  return load_baseline(path);
}

// The kernels of processors multiply in bf16 and fp32, those of GPUs also in fp16 and, if the GPU
// can, in fp8 (src/kernels/kernels.h).
void check_precisions(const BenchGemmOptions& options) {
  for (const std::string& precision : options.precisions) {
    if (precision != "fp16" && precision != "fp8") {
      continue;
    }
    if (options.device.kind != DeviceKind::cuda) {
      throw ConfigError(fmt::format(
          "--precision {}: no kernel for processors multiplies in {}, only those for GPUs do: "
          "measure bf16 or fp32, or give --device cuda",
          precision, precision));
    }
    RunConfig config;
    config.train.precision = precision == "fp16" ? "fp16" : "bf16";
    config.train.products = precision == "fp8" ? "fp8" : config.train.products;
    check_precision(config, options.device);
  }
}

// Without a baseline, --at-least would always be met.
void check_demand(double at_least, const BenchGemmOptions& options) {
  if (at_least > 0 && !options.baseline) {
    throw ConfigError(
        "--at-least compares with a baseline, and there is none: create one with trireme health "
        "--save-baseline FILE and name it with --baseline FILE");
  }
  for (const std::string& precision : options.precisions) {
    const std::vector<std::string> names = baseline_rates(precision, options.device, 1);
    if (at_least > 0 && !options.baseline->rates.contains(names.front())) {
      throw ConfigError(fmt::format("--at-least: the baseline has no rate for {}", precision));
    }
  }
}

// Returns, for example, "# gemm: bf16 up to 903 GFLOP/s, fp32 up to 452 GFLOP/s, at least 0.93 of
// the node's baseline".
std::string gemm_verdict(const BenchGemmResult& result) {
  std::map<std::string, double> best;
  for (const auto& entry : result.results) {
    double& rate = best[entry.at("params").at("precision").get<std::string>()];
    rate = std::max(rate, entry.at("metrics").at("flops_per_s").get<double>());
  }
  std::string text = "# gemm:";
  for (const auto& [precision, rate] : best) {
    text += fmt::format("{} {} up to {}", text.ends_with(':') ? "" : ",", precision,
                        format_rate(rate, "FLOP/s"));
  }
  return text +
         (result.least_fraction
              ? fmt::format(", at least {:.2f} of the node's baseline", *result.least_fraction)
              : "") +
         "\n";
}

void run_gemm(const GemmArguments& arguments, AppContext& context) {
  BenchGemmOptions options = arguments.rest;
  options.duration = arguments.output.duration;
  options.baseline = load_node_baseline(arguments.baseline);
  options.sizes.assign(arguments.sizes.begin(), arguments.sizes.end());
  if (options.sizes.empty() && options.model.empty()) {
    options.sizes = {1024, 2048, 4096};
  }
  BenchGemmResult result;
  const auto measure = [&] {
    options.device = measured_device(arguments.device, context);
    check_precisions(options);
    check_demand(arguments.at_least, options);
    result = bench_gemm(options, context.session());
    return result.results;
  };
  const auto finish = [&] {
    if (result.wrong > 0) {
      throw DeviceError(fmt::format(
          "{} of matrix products came out wrong: test the processors and the memory of these hosts",
          counted(result.wrong, "element")));
    }
    if (result.least_fraction && *result.least_fraction < arguments.at_least / 100) {
      context.exit_code = static_cast<int>(ExitCode::below_threshold);
    }
  };
  run_bench({.command = "gemm",
             .measure = measure,
             .print = [&](const auto&) { fmt::print("{}", gemm_verdict(result)); },
             .finish = finish},
            arguments.output, context);
}

}  // namespace

void add_gemm_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("gemm", "Measure the rate of matrix products on all ranks at once");
  const auto arguments = std::make_shared<GemmArguments>();
  BenchGemmOptions& options = arguments->rest;
  command
      .add_option("--size", arguments->sizes,
                  "Sizes of square matrices (default: 1024,2048,4096; with --model: none)")
      .type_name("N,...")
      .delimiter(',')
      .check(integer_within(1, kLargestSize));
  command.add_option("--model", options.model, "Measure the products of this model preset")
      .type_name("NAME");
  command.add_option("--tokens", options.tokens, "Tokens per micro-batch of the model")
      .check(integer_within(1, 1 << 24));
  command.add_option("--precision", options.precisions, "Precisions (default: bf16,fp32)")
      .type_name("bf16|fp32|fp16|fp8,...")
      .delimiter(',')
      .check(one_of({"bf16", "fp32", "fp16", "fp8"}));
  add_device_option(command, arguments->device);
  command
      .add_option("--threads", options.threads,
                  "Compute threads per rank (default: its share of the cores)")
      .check(thread_count());
  command
      .add_option("--baseline", arguments->baseline,
                  "Compare with the rates in FILE, which trireme health --save-baseline wrote "
                  "(default: node.baseline in the site's folder, if there is one)")
      .type_name("FILE");
  command
      .add_option("--at-least", arguments->at_least,
                  "Exit with 4 if a rate is below PERCENT of the baseline's")
      .type_name("PERCENT")
      .no_default()
      .check(within(1.0, 100.0));
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  mpirun -n 2 trireme bench gemm --size 2048 -J gemm.json\n"
      "  trireme bench gemm --model gpt2-124m --tokens 1024 --precision bf16");
  command.callback([arguments, &context] { run_gemm(*arguments, context); });
}

}  // namespace trireme
