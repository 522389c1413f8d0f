#include "benchmarks/coll/coll_command.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/coll/coll.h"
#include "benchmarks/coll/tune.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/figures.h"
#include "mpi/session/backend.h"
#include "src/app/command/number_check.h"
#include "src/base/file.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

// CollArguments holds the arguments as typed. Names and sizes are parsed once a session can report
// an error.
struct CollArguments {
  std::vector<std::string> ops = {"all_reduce"};
  std::string backend = "auto";
  std::string device = "cpu";
  std::string min_bytes, max_bytes, increment = "1M";
  int factor = 0;
  std::string dtype = "float";
  std::string reduction = "sum";
  std::string peer;
  std::string table = "nccl";
  std::string tune_file;
  BenchOutput output;
  BenchCollOptions rest;
};

std::int64_t bounded_bytes(const std::string& text, const char* flag) {
  const std::int64_t bytes = parse_bytes(text);
  if (bytes > kMostBytes) {
    throw ConfigError(fmt::format("{} {}: the size must be at most 1024 GiB", flag, text));
  }
  return bytes;
}

// Fills in the default sizes: 32 MiB as in nccl-tests; with --write-tuning, 8 bytes to 64 MiB in
// factors of 4.
BenchCollOptions resolve(const CollArguments& arguments) {
  BenchCollOptions options = arguments.rest;
  const bool tunes = !arguments.tune_file.empty();
  const auto bytes = [&](const std::string& text, const char* flag, const char* unsaid) {
    return bounded_bytes(text.empty() ? unsaid : text, flag);
  };
  const std::string top =
      arguments.min_bytes.empty() ? (tunes ? "64M" : "32M") : arguments.min_bytes;
  options.min_bytes = bytes(arguments.min_bytes, "-b", tunes ? "8" : "32M");
  options.max_bytes = bytes(arguments.max_bytes, "-e", tunes ? "64M" : top.c_str());
  options.increment = bytes(arguments.increment, "-i", "1M");
  options.factor = arguments.factor > 0 ? arguments.factor : (tunes ? 4 : 1);
  options.backend = parse_backend(arguments.backend);
  options.dtype = parse_bench_dtype(arguments.dtype);
  options.reduction = parse_reduce_op(arguments.reduction);
  options.peer_mpi = arguments.peer == "mpi";
  options.osu_table = arguments.table == "osu";
  options.ops.clear();
  for (const std::string& name : arguments.ops) {
    options.ops.push_back(parse_collective(name));
  }
  return options;
}

Json tune(const CollArguments& arguments, AppContext& context, std::vector<std::string>& left_out) {
  BenchCollOptions options = resolve(arguments);
  options.duration = arguments.output.duration;
  if (arguments.device != "cpu") {
    throw ConfigError("--write-tuning compares transports between CPUs: GPUs use NCCL");
  }
  if (std::find(options.ops.begin(), options.ops.end(), Collective::barrier) != options.ops.end()) {
    throw ConfigError("--write-tuning cannot be used with barrier, which has no size");
  }
  const TuneResult result = bench_tune(options, context.session());
  left_out = result.left_out;
  if (context.session().world().rank() == 0) {
    write_named_file(arguments.tune_file, to_text(result.tuning));
  }
  return result.results;
}

// Fails on wrong data, which indicates a fault of the machine or of this program.
Json measure(const CollArguments& arguments, AppContext& context,
             std::vector<std::string>& left_out) {
  BenchCollOptions options = resolve(arguments);
  options.duration = arguments.output.duration;
  options.device = measured_device(arguments.device, context);
  const BenchCollResult result = bench_coll(options, context.session());
  left_out = result.left_out;
  if (result.wrong > 0) {
    context.exit_code = static_cast<int>(ExitCode::device);
  }
  return result.results;
}

void add_sizes(CommandLine& command, CollArguments& arguments) {
  command
      .add_option("-b,--minbytes", arguments.min_bytes,
                  "Smallest size of the array (default: 32M; with --write-tuning: 8)")
      .type_name("BYTES");
  command
      .add_option("-e,--maxbytes", arguments.max_bytes,
                  "Largest size of the array (default: the smallest; with --write-tuning: 64M)")
      .type_name("BYTES");
  command.add_option("-i,--stepbytes", arguments.increment, "Increment between sizes")
      .type_name("BYTES");
  command
      .add_option("-f,--stepfactor", arguments.factor,
                  "Factor between sizes, instead of -i (default: none; with --write-tuning: 4)")
      .check(integer_within(1, 1024));
}

void add_rounds(CommandLine& command, BenchCollOptions& options) {
  command.add_option("-n,--iters", options.turns.iterations, "Samples per size")
      .check(integer_within(1, 1'000'000));
  command.add_option("-w,--warmup_iters", options.turns.warmup, "Warm-up calls per size")
      .check(integer_within(0, 1'000'000));
  command
      .add_option("-m,--agg_iters", options.turns.aggregated,
                  "Calls per sample (default: as many as fill 0.2 ms, at most 100)")
      .check(integer_within(0, 1'000'000));
  command.add_option("-c,--check", options.checks, "Rounds that verify the data; 0 = none")
      .check(integer_within(0, 1000));
}

void add_operation(CommandLine& command, CollArguments& arguments) {
  command
      .add_option("--op", arguments.ops,
                  "Operations to measure, with commas between them: all_reduce, reduce_scatter, "
                  "all_gather, broadcast, all_to_all, barrier (default: all_reduce)")
      .type_name("NAME,...")
      .delimiter(',');
  command.add_option("-d,--datatype", arguments.dtype, "Type of the elements")
      .type_name("float|double|bfloat16|int32|int64");
  command.add_option("-o,--redop", arguments.reduction, "The reduction")
      .check(one_of({"sum", "max", "min"}));
  command.add_option("-r,--root", arguments.rest.root, "Root rank of broadcast")
      .check(integer_within(0, 1 << 24));
  add_backend_option(command, arguments.backend);
  add_device_option(command, arguments.device);
  command.add_flag("--ordinary-memory", arguments.rest.ordinary_memory,
                   "Use plain buffers instead of the backend's own");
  command.add_option("--peer", arguments.peer, "Also measure MPI's own operation, in alternation")
      .check(one_of({"mpi"}));
  command.add_option("--table", arguments.table, "Whose table to print")
      .check(one_of({"nccl", "osu"}));
}

}  // namespace

void add_coll_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "coll", "Measure collective operations, with the options and the table of nccl-tests");
  const auto arguments = std::make_shared<CollArguments>();
  add_sizes(command, *arguments);
  add_rounds(command, arguments->rest);
  add_operation(command, *arguments);
  // Open MPI's mpirun takes "--tune FILE" for its own option, even after the program's name, so
  // there is a second name.
  command
      .add_option("--write-tuning,--tune", arguments->tune_file,
                  "Measure all backends and write to FILE which is best for which size, for "
                  "comm.tuning")
      .type_name("FILE")
      .written();
  add_output_options(command, arguments->output);
  command.footer(
      "Example:\n"
      "  mpirun -n 2 trireme bench coll --op all_reduce -b 1M -e 256M -f 16 \\\n"
      "    --backend shm --peer mpi -J coll.json");
  command.callback([arguments, &context] {
    const bool tunes = !arguments->tune_file.empty();
    std::vector<std::string> left_out;
    run_bench(
        {.command = "coll",
         .measure =
             [&] {
               return tunes ? tune(*arguments, context, left_out)
                            : measure(*arguments, context, left_out);
             },
         .print =
             [tunes](const Json& results) { fmt::print("{}", tunes ? "" : coll_verdict(results)); },
         .left_out = [&] { return left_out; },
         .finish = {}},
        arguments->output, context);
  });
}

}  // namespace trireme
