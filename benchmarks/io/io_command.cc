#include "benchmarks/io/io_command.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/figures.h"
#include "benchmarks/io/io.h"
#include "src/app/command/number_check.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestStonewall = 86'400;

// IoArguments holds the arguments as typed.
struct IoArguments {
  std::string api = "posix";
  std::string block = "64M", transfer = "1M", file_bytes = "0";
  std::string cache = "evict";
  std::string test = "both";
  std::string ior_csv;
  BenchOutput output;
  BenchIoOptions rest;
};

BenchIoOptions resolve(const IoArguments& arguments) {
  BenchIoOptions options = arguments.rest;
  options.api = parse_io_api(arguments.api);
  options.layout.block_bytes = parse_bytes(arguments.block);
  options.layout.transfer_bytes = parse_bytes(arguments.transfer);
  options.file_bytes = parse_bytes(arguments.file_bytes);
  options.cache = arguments.cache == "evict"  ? IoCache::evict
                  : arguments.cache == "keep" ? IoCache::keep
                                              : IoCache::bypass;
  options.data = arguments.test != "metadata";
  options.metadata = arguments.test != "data";
  options.duration = arguments.output.duration / (options.data && options.metadata ? 2 : 1);
  return options;
}

// Returns, for example, "# io: write 1.2 GB/s, read 3.4 GB/s, create_file 20.1k/s".
std::string io_verdict(const Json& results) {
  std::string text = "# io:";
  for (const Json& result : results) {
    const Json& metrics = result.at("metrics");
    const std::string name = result.at("name");
    const char* const comma = text.ends_with(':') ? "" : ",";
    if (name != "io_metadata") {
      text += fmt::format("{} {} {}", comma, name.substr(3),
                          figure_text("bytes_per_s", metrics.at("bytes_per_s").get<double>()));
    } else if (const std::string operation = result.at("params").at("operation");
               operation.ends_with("_file")) {
      text += fmt::format("{} {} {}", comma, operation.substr(0, operation.find('_')),
                          format_rate(metrics.at("operations_per_s").get<double>(), "files/s"));
    }
  }
  return text + "\n";
}

void run_io(const IoArguments& arguments, AppContext& context) {
  const BenchIoOptions options = resolve(arguments);
  check_output_file(arguments.ior_csv, "--ior-csv");
  BenchIoResult result;
  const auto measure = [&] {
    result = bench_io(options, context.session());
    return result.results;
  };
  const auto print = [&](const Json& results) {
    fmt::print("{}", io_verdict(results));
    if (!arguments.ior_csv.empty()) {
      write_named_file(arguments.ior_csv, ior_csv(result.setup, result.phases));
    }
  };
  const auto finish = [&] {
    if (result.wrong > 0) {
      throw DeviceError(fmt::format("{} came back wrong: test this storage before you trust it",
                                    counted(result.wrong, "byte")));
    }
  };
  run_bench({.command = "io", .measure = measure, .print = print, .finish = finish},
            arguments.output, context);
}

void add_data_options(CommandLine& command, IoArguments& arguments) {
  BenchIoOptions& options = arguments.rest;
  command.add_option("-a,--api", arguments.api, "The interface that moves the data")
      .check(one_of({"posix", "uring", "hdf5"}));
  command.add_option("-b,--block", arguments.block, "Bytes per rank and segment")
      .type_name("BYTES");
  command.add_option("-t,--transfer", arguments.transfer, "Bytes per call").type_name("BYTES");
  command.add_option("-s,--segments", options.layout.segments, "Segments per file")
      .check(positive_count());
  command.add_flag("-F,--file-per-process", options.layout.file_per_process,
                   "Use a file for each rank instead of one for all");
  command.add_flag("-C,--reorder", options.reorder,
                   "Read what the next node wrote, or the next rank on one node");
  command.add_option("-Q,--task-offset", options.task_offset, "How many nodes further, with -C")
      .check(integer_within(1, 1 << 20));
  command.add_flag("-z,--random", options.layout.random, "Access the file in random order");
  command
      .add_option("-D,--stonewall", options.stonewall,
                  "Stop each write and each read after SECONDS")
      .check(within(0.001, kLongestStonewall))
      .no_default()
      .type_name("SECONDS");
  command.add_flag("-e,--fsync", options.fsync, "Sync each file at the end of a write");
  command.add_flag("-W,--check-write", options.check_write, "Compare every byte after each write");
  command.add_flag("-R,--check-read", options.check_read, "Compare every byte after each read");
  command
      .add_option("--cache", arguments.cache,
                  "Page cache: evict the files before they are read, keep them, or bypass it with "
                  "direct I/O")
      .check(one_of({"evict", "keep", "bypass"}));
  command.add_option("--depth", options.depth, "Transfers in flight at once, with --api uring")
      .check(integer_within(1, 1024));
}

}  // namespace

void add_io_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "io", "Measure a file system, with the options and the tables of IOR and mdtest");
  const auto arguments = std::make_shared<IoArguments>();
  BenchIoOptions& options = arguments->rest;
  command.add_option("--dir", options.folder, "Measure the file system that holds DIR")
      .type_name("DIR");
  command.add_option("--test", arguments->test, "What to measure")
      .check(one_of({"data", "metadata", "both"}));
  add_data_options(command, *arguments);
  command.add_option("-i,--repetitions", options.repetitions, "Repetitions")
      .check(positive_count());
  command.add_option("-n,--files", options.files, "Files and folders per rank, for the metadata")
      .check(integer_within(1, 100'000'000));
  command.add_option("-w,--file-bytes", arguments->file_bytes, "Bytes in each of these files")
      .type_name("BYTES");
  command.add_flag("-u,--unique-dir", options.own_folders,
                   "Make these files in a folder for each rank instead of one for all");
  command
      .add_option("--ior-csv", arguments->ior_csv,
                  "Also write the repetitions to FILE with the columns of IOR's CSV")
      .type_name("FILE")
      .written();
  add_output_options(command, arguments->output);
  command.footer(
      "Examples:\n"
      "  mpirun -n 2 trireme bench io --dir /scratch -F -b 4G -e -C -J io.json\n"
      "  trireme bench io --dir /scratch --test metadata -n 10000");
  command.callback([arguments, &context] { run_io(*arguments, context); });
}

}  // namespace trireme
