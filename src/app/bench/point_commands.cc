#include "src/app/bench/point_commands.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/bench/busy_watch.h"
#include "src/app/bench/figures.h"
#include "src/app/bench/p2p.h"
#include "src/app/bench/pairs.h"
#include "src/app/bench/report.h"
#include "src/app/number_check.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// As typed.
struct P2pArguments {
  std::string sizes = "1:4M";
  std::string backend = "auto";
  std::string test = "both";
  std::vector<int> pair = {0, 1};
  std::string json_file;
  BenchP2pOptions rest;
};

struct PairsArguments {
  std::string backend = "auto";
  std::string by = "rank";
  std::string bytes = "1M";
  std::string threshold;
  std::string json_file;
  BenchPairsOptions rest;
};

Check small_count() { return integer_within(1, 1'000'000); }

std::int64_t message_bytes(const std::string& text, const char* flag) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t bytes = parse_bytes(text);
  if (bytes > kMost) {
    throw ConfigError(fmt::format("{} {}: a message has at most 1 GiB", flag, text));
  }
  return bytes;
}

void write_once(const nlohmann::ordered_json& results, const std::string& file,
                AppContext& context) {
  if (context.session().world().rank() == 0) {
    write_bench_document(results, file);
  }
}

// "4M" or "1:4M", as OSU's -m.
void read_sizes(const std::string& text, BenchP2pOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) {
    options.min_bytes = message_bytes(text.substr(0, colon), "-m");
  }
  options.max_bytes =
      message_bytes(colon == std::string::npos ? text : text.substr(colon + 1), "-m");
  if (options.max_bytes < options.min_bytes) {
    throw ConfigError(fmt::format("-m {}: the largest message is below the smallest", text));
  }
}

void run_p2p(const P2pArguments& arguments, AppContext& context) {
  BenchP2pOptions options = arguments.rest;
  options.backend = parse_backend(arguments.backend);
  options.first = arguments.pair[0];
  options.second = arguments.pair[1];
  options.latency = arguments.test != "bandwidth";
  options.bandwidth = arguments.test != "latency";
  read_sizes(arguments.sizes, options);
  const BenchP2pResult result = bench_p2p(options, context.session());
  if (context.session().world().rank() == 0) {
    fmt::print("{}", p2p_verdict(result.results));
  }
  write_once(result.results, arguments.json_file, context);
  if (result.wrong > 0) {
    throw DeviceError(fmt::format("{} bytes arrived changed", result.wrong));
  }
}

void run_pairs(const PairsArguments& arguments, AppContext& context) {
  BenchPairsOptions options = arguments.rest;
  options.backend = parse_backend(arguments.backend);
  options.by_host = arguments.by == "host";
  options.bytes = std::max<std::int64_t>(message_bytes(arguments.bytes, "--bytes"), 1);
  if (!arguments.threshold.empty()) {
    options.threshold = parse_threshold(arguments.threshold);
  }
  const BenchPairsResult result = bench_pairs(options, context.session());
  write_once(result.results, arguments.json_file, context);
  if (result.below_threshold) {
    context.exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

}  // namespace

void add_p2p_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("p2p", "Latency and bandwidth between two ranks, in the form of OSU's");
  const auto arguments = std::make_shared<P2pArguments>();
  BenchP2pOptions& options = arguments->rest;
  command.add_option("-m,--message-size", arguments->sizes, "largest, or smallest:largest (1:4M)");
  command.add_option("-i,--iterations", options.iterations, "of each size (as OSU)")
      .check(small_count());
  command.add_option("-x,--warmup", options.warmup, "before them (as OSU)")
      .check(integer_within(0, 1'000'000));
  command.add_option("-W,--window-size", options.window, "messages under way, bandwidth (64)")
      .check(integer_within(1, 4096));
  command.add_option("--test", arguments->test, "latency, bandwidth or both (both)")
      .check(one_of({"latency", "bandwidth", "both"}));
  command.add_option("--pair", arguments->pair, "the two ranks (0,1)")
      .delimiter(',')
      .expected(2)
      .check(integer_within(0, 1 << 24));
  command.add_option("--backend", arguments->backend,
                     "auto (default), mpi, shm, ucx, hierarchical");
  command.add_option("-J,--json-file", arguments->json_file, "write the results there as JSON");
  command.footer("Example:\n  mpirun -n 2 trireme bench p2p -m 8:1M --backend mpi -J p2p.json");
  command.callback(
      [arguments, &context] { run_watched(context, [&] { run_p2p(*arguments, context); }); });
}

void add_pairs_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("pairs", "Bandwidth and latency of every pair of ranks or hosts");
  const auto arguments = std::make_shared<PairsArguments>();
  BenchPairsOptions& options = arguments->rest;
  command.add_option("--by", arguments->by, "rank (default), or host: one rank of each")
      .check(one_of({"rank", "host"}));
  command.add_option("--bytes", arguments->bytes, "of a message (1M)");
  command.add_option("-n,--iters", options.iterations, "windows of each pair (10)")
      .check(small_count());
  command.add_option("-w,--warmup_iters", options.warmup, "before them (2)")
      .check(integer_within(0, 1'000'000));
  command.add_option("-W,--window-size", options.window, "messages under way (16)")
      .check(integer_within(1, 4096));
  command.add_option("--threshold", arguments->threshold,
                     "exit with 4 if a pair is below: 0.8 of the median, or 2.5GB/s");
  command.add_option("--csv", options.csv_file, "write the bandwidths there");
  command.add_option("--svg", options.svg_file, "and there as a figure");
  command.add_option("--backend", arguments->backend,
                     "auto (default), mpi, shm, ucx, hierarchical");
  command.add_option("-J,--json-file", arguments->json_file, "write the results there as JSON");
  command.footer(
      "Example:\n  mpirun -n 4 trireme bench pairs --threshold 0.5 --csv pairs.csv --svg "
      "pairs.svg");
  command.callback(
      [arguments, &context] { run_watched(context, [&] { run_pairs(*arguments, context); }); });
}

}  // namespace trireme
