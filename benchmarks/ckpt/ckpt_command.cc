#include "benchmarks/ckpt/ckpt_command.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "benchmarks/bench_options.h"
#include "benchmarks/ckpt/ckpt.h"
#include "benchmarks/ckpt/model_ckpt.h"
#include "benchmarks/ckpt/model_state.h"
#include "src/app/command/number_check.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/train/saving/tmpfs.h"

namespace trireme {
namespace {

// Files of less say nothing about a disk.
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

struct CkptArguments {
  BenchCkptOptions rest;
  std::string bytes = "2G";
  std::string size;
};

// Throws ConfigError for a folder on a disk, whose speed would be taken for that of memory.
void check_memory(const std::filesystem::path& folder) {
  if (!folder.empty() && std::filesystem::exists(folder) && !is_tmpfs(folder)) {
    throw ConfigError(fmt::format(
        "--memory {} lies on a disk: name a folder on a tmpfs, such as /dev/shm", folder.string()));
  }
}

nlohmann::ordered_json measure_ckpt(const CkptArguments& arguments, double duration,
                                    AppContext& context) {
  BenchCkptOptions options = arguments.rest;
  options.bytes = parse_bytes(arguments.bytes);
  options.duration = duration;
  if (options.bytes < kLeastBytes) {
    throw ConfigError(fmt::format("--bytes {}: a state needs at least {} to be measured",
                                  arguments.bytes, format_bytes(kLeastBytes)));
  }
  if (arguments.size.empty()) {
    check_memory(options.memory);
    return bench_ckpt(options);
  }
  if (options.encrypt) {
    throw ConfigError("--encrypt cannot be used with --size");
  }
  if (!options.memory.empty()) {
    throw ConfigError("--memory cannot be used with --size, which measures disks");
  }
  return bench_model_ckpt({.model = arguments.size,
                           .folder = options.folder,
                           .bytes = options.bytes,
                           .rounds = options.rounds,
                           .duration = duration,
                           .threads = options.threads},
                          context.session());
}

}  // namespace

void add_ckpt_bench(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "ckpt", "Time saving and loading of checkpoints and compare with memcpy and dd");
  const auto arguments = std::make_shared<CkptArguments>();
  BenchCkptOptions& options = arguments->rest;
  options.folder = ".";
  command.add_option("--dir", options.folder, "Measure the disk that holds DIR").type_name("DIR");
  command.add_option("--bytes", arguments->bytes, "Size of the training state").type_name("BYTES");
  command
      .add_option("--size", arguments->size,
                  "Instead: save and load the checkpoint of this model as MLPerf Storage does, "
                  "with all ranks, scaled down to --bytes")
      .check(one_of(model_state_names()));
  command.add_option("--rounds", options.rounds, "Timed rounds").check(positive_count());
  command
      .add_option("--threads", options.threads,
                  "Threads that copy (default: all cores; with --size: a rank's share of them)")
      .check(thread_count());
  command
      .add_option("--memory", options.memory,
                  "Also time checkpoints in memory, in DIR on a tmpfs with room for three times "
                  "the state")
      .type_name("DIR");
  command.add_flag("--encrypt", options.encrypt,
                   "Also time encrypted checkpoints, and compare them with plain ones");
  command.footer(
      "Examples:\n"
      "  trireme bench ckpt --dir /scratch --memory /dev/shm --bytes 2G -J ckpt.json\n"
      "  mpirun -n 2 trireme bench ckpt --dir /scratch --size llama3-70b --bytes 8G");
  run_when_given(command, context, "ckpt", [arguments, &context](const BenchOutput& output) {
    return measure_ckpt(*arguments, output.duration, context);
  });
}

}  // namespace trireme
