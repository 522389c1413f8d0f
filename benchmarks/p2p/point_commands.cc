#include "benchmarks/p2p/point_commands.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/figures.h"
#include "benchmarks/p2p/p2p.h"
#include "benchmarks/p2p/pairs.h"
#include "mpi/session/backend.h"
#include "src/app/command/number_check.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// P2pArguments holds the arguments as typed.
struct P2pArguments {
  std::string sizes = "1:4M";
  std::string backend = "auto";
  std::string device = "cpu";
  std::string test = "both";
  std::string peer;
  std::vector<int> pair = {0, 1};
  BenchOutput output;
  BenchP2pOptions rest;
};

struct PairsArguments {
  std::string backend = "auto";
  std::string by = "rank";
  std::string bytes = "1M";
  std::string threshold;
  BenchOutput output;
  BenchPairsOptions rest;
};

Check small_count() { return integer_within(1, 1'000'000); }

std::int64_t message_bytes(const std::string& text, const char* flag) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t bytes = parse_bytes(text);
  if (bytes > kMost) {
    throw ConfigError(fmt::format("{} {}: a message must have at most 1 GiB", flag, text));
  }
  return bytes;
}

// Parses "4M" or "1:4M", like OSU's -m.
void read_sizes(const std::string& text, BenchP2pOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) {
    options.min_bytes = message_bytes(text.substr(0, colon), "-m");
  }
  options.max_bytes =
      message_bytes(colon == std::string::npos ? text : text.substr(colon + 1), "-m");
  if (options.max_bytes < options.min_bytes) {
    throw ConfigError(fmt::format("-m {}: the largest message is smaller than the smallest", text));
  }
}

void run_p2p(const P2pArguments& arguments, AppContext& context) {
  BenchP2pOptions options = arguments.rest;
  options.backend = parse_backend(arguments.backend);
  options.first = arguments.pair[0];
  options.second = arguments.pair[1];
  options.latency = arguments.test != "bandwidth";
  options.bandwidth = arguments.test != "latency";
  options.peer_mpi = arguments.peer == "mpi";
  read_sizes(arguments.sizes, options);
  options.duration = arguments.output.duration;
  BenchP2pResult result;
  run_bench({.command = "p2p",
             .measure =
                 [&] {
                   options.device = measured_device(arguments.device, context);
                   result = bench_p2p(options, context.session());
                   return result.results;
                 },
             .print = [](const auto& results) { fmt::print("{}", p2p_verdict(results)); },
             .left_out = [&] { return result.left_out; },
             .finish =
                 [&] {
                   if (result.wrong > 0) {
                     throw DeviceError(fmt::format(
                         "{} arrived with a wrong value: test the network and the memory of these "
                         "hosts",
                         counted(result.wrong, "byte")));
                   }
                 }},
            arguments.output, context);
}

void run_pairs(const PairsArguments& arguments, AppContext& context) {
  BenchPairsOptions options = arguments.rest;
  options.backend = parse_backend(arguments.backend);
  options.by_host = arguments.by == "host";
  options.bytes = std::max<std::int64_t>(message_bytes(arguments.bytes, "--bytes"), 1);
  if (!arguments.threshold.empty()) {
    options.threshold = parse_threshold(arguments.threshold);
  }
  options.duration = arguments.output.duration;
  const auto measure = [&] {
    const BenchPairsResult result = bench_pairs(options, context.session());
    if (result.below_threshold) {
      context.exit_code = static_cast<int>(ExitCode::below_threshold);
    }
    return result.results;
  };
  run_bench({.command = "pairs", .measure = measure, .print = [](const auto&) {}, .finish = {}},
            arguments.output, context);
}

}  // namespace

void add_p2p_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "p2p",
      "Measure latency and bandwidth between two ranks, with the options of OSU's benchmarks");
  const auto arguments = std::make_shared<P2pArguments>();
  BenchP2pOptions& options = arguments->rest;
  command
      .add_option("-m,--message-size", arguments->sizes, "Sizes of the messages, from MIN to MAX")
      .type_name("[MIN:]MAX");
  command
      .add_option("-i,--iterations", options.iterations,
                  "Iterations per size (default: as in OSU's benchmarks)")
      .check(small_count());
  command
      .add_option("-x,--warmup", options.warmup,
                  "Warm-up iterations per size (default: as in OSU's benchmarks)")
      .check(integer_within(0, 1'000'000));
  command.add_option("-W,--window-size", options.window, "Messages in flight, for the bandwidth")
      .check(integer_within(1, 4096));
  command.add_option("--test", arguments->test, "What to measure")
      .check(one_of({"latency", "bandwidth", "both"}));
  command.add_flag("-c,--validation", options.show_check,
                   "Show in the tables whether the data arrived intact, which is always verified");
  command.add_option("--pair", arguments->pair, "The two ranks (default: 0,1)")
      .type_name("RANK,RANK")
      .delimiter(',')
      .expected(2)
      .check(integer_within(0, 1 << 24));
  add_backend_option(command, arguments->backend);
  add_device_option(command, arguments->device);
  command
      .add_option("--peer", arguments->peer,
                  "Also measure MPI's own calls, after each size, as OSU's benchmarks do")
      .check(one_of({"mpi"}));
  add_output_options(command, arguments->output);
  command.footer(
      "Example:\n  mpirun -n 2 trireme bench p2p -m 8:1M --backend shm --peer mpi -J p2p.json");
  command.callback([arguments, &context] { run_p2p(*arguments, context); });
}

void add_pairs_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("pairs", "Measure bandwidth and latency of every pair of ranks or hosts");
  const auto arguments = std::make_shared<PairsArguments>();
  BenchPairsOptions& options = arguments->rest;
  command
      .add_option("--by", arguments->by,
                  "Measure pairs of ranks, or pairs of hosts with one rank each")
      .check(one_of({"rank", "host"}));
  command.add_option("--bytes", arguments->bytes, "Size of a message").type_name("BYTES");
  command.add_option("-n,--iters", options.iterations, "Timed windows per pair")
      .check(small_count());
  command.add_option("-w,--warmup_iters", options.warmup, "Warm-up windows per pair")
      .check(integer_within(0, 1'000'000));
  command.add_option("-W,--window-size", options.window, "Messages in flight")
      .check(integer_within(1, 4096));
  command
      .add_option("--threshold", arguments->threshold,
                  "Exit with 4 if the bandwidth of a pair is below RATE: a fraction of the "
                  "median, as in 0.8, or as in 2.5GB/s")
      .type_name("RATE");
  command.add_option("--csv", options.csv_file, "Also write the bandwidths to FILE as CSV")
      .type_name("FILE")
      .written();
  command.add_option("--svg", options.svg_file, "Also draw the bandwidths in FILE as SVG")
      .type_name("FILE")
      .written();
  add_backend_option(command, arguments->backend);
  add_output_options(command, arguments->output, false);
  command.footer(
      "Example:\n"
      "  mpirun -n 4 trireme bench pairs --threshold 0.5 --csv pairs.csv \\\n"
      "    --svg pairs.svg");
  command.callback([arguments, &context] { run_pairs(*arguments, context); });
}

}  // namespace trireme
