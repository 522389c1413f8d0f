#include "src/app/study/scale_command.h"

#include <chrono>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/report.h"
#include "io/data/file_lock.h"
#include "slurm/render/site_profile.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/written_files.h"
#include "src/app/study/scale_check.h"
#include "src/app/study/scale_report.h"
#include "src/app/study/scale_runner.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/named_file.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/train/run/config_files.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void check_output_place(const ScaleOptions& options) {
  const ConfigSources sources{
      .file = options.config, .arguments = options.arguments, .environment = environ};
  check_not_read({{"-J", options.out}}, files_of_config(sources, load_run_config(sources).config));
  check_outside_of({"-J", options.out}, options.folder,
                   "which holds what the same command measures");
}

void scale(ScaleOptions options, int& exit_code) {
  if (!options.out.empty()) {
    check_named_file(options.out);
  }
  if (options.folder.empty()) {
    options.folder =
        fmt::format("scale-{}-{}", std::filesystem::path(options.config).stem().string(),
                    options.weak ? "weak" : "strong");
  }
  if (options.ranks_per_node == 0 && !options.cluster.empty()) {
    options.ranks_per_node = load_site_profile(options.cluster).node.ranks;
  }
  if (options.ranks_per_node == 0) {
    throw ConfigError("without --cluster, give the ranks of each node with --ranks-per-node");
  }
  if (const std::string problem = problem_with_place_of_study(options.folder); !problem.empty()) {
    throw ConfigError(fmt::format("--dir: {} {}: name another folder", printable(options.folder),
                                  printable(problem)));
  }
  check_output_place(options);
  const ScaleStudy study(options);
  const std::optional<FileLock> lock =
      FileLock::try_take(std::filesystem::path(options.folder) / ".scale.lock");
  if (!lock) {
    throw PolicyError(
        fmt::format("another trireme scale is at work on {}: wait for it, or choose "
                    "another folder with --dir",
                    options.folder));
  }
  check_finished_runs(study);
  bool all = true;
  if (options.cluster.empty()) {
    run_locally(study);
  } else {
    all = run_on_slurm(study);
  }
  if (!all && options.no_wait) {
    fmt::print("the jobs are submitted; the same command shows the results when they have ended\n");
    return;
  }
  const ScaleReport report = make_scale_report(study);
  BenchContext context;
  context.command = "scale";
  context.time = seconds_now();
  const nlohmann::ordered_json document = bench_document(scale_results(report, study), context);
  if (!options.out.empty()) {
    write_named_file(options.out, document_text(document));
  }
  options.json ? print_json(document) : print_scale_report(report, study);
  if (!all) {
    fmt::print(stderr, "trireme: some runs have failed; the same command repeats them\n");
    exit_code = static_cast<int>(ExitCode::device);
  }
}

void add_options(CommandLine& command, ScaleOptions& options) {
  command.add_option("CONFIG", options.config, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options.arguments,
                     "Configuration keys to override, as in train.global_batch=256");
  command.add_option("--nodes", options.nodes, "Numbers of nodes, such as 1,2,4")
      .required()
      .delimiter(',')
      .check(integer_within(1, 100000));
  command
      .add_option("--ranks-per-node", options.ranks_per_node,
                  "Ranks on each node (default: the profile's)")
      .check(integer_within(1, 4096));
  command.add_flag("--weak", options.weak,
                   "Let the global batch grow with the nodes (default: the same batch for all)");
  command
      .add_option("--cluster", options.cluster,
                  "Run as Slurm jobs on the cluster of this profile (default: with mpirun, here)")
      .type_name("FILE");
  command
      .add_option("--dir", options.folder,
                  "Folder of the study (default: scale-CONFIG-strong or -weak)")
      .type_name("DIR");
  command.add_option("--repeat", options.repetitions, "Runs on each number of nodes")
      .check(integer_within(1, 100));
  command.add_option("--steps", options.steps, "Steps that count in each run, after two others")
      .check(integer_within(3, 1000000));
  command
      .add_option("--efficiency", options.efficiency,
                  "The knee is the last number of nodes with this efficiency")
      .type_name("PERCENT")
      .check(within(1.0, 100.0));
  command
      .add_option(
          "--time", options.time,
          "Time limit of each job: minutes, HH:MM:SS or D-HH:MM:SS (default: the profile's)")
      .type_name("TIME");
  command.add_flag("--no-wait", options.no_wait, "Submit the jobs and end");
  options.keys.add_to(command);
  command.add_option("-J", options.out, "Write everything that was measured to FILE as JSON")
      .type_name("FILE")
      .written();
  command.add_flag("--json", options.json, "Print the same JSON");
}

}  // namespace

void add_scale_command(CommandLine& app, int& exit_code, const AccessSource& access) {
  CommandLine& command =
      app.add_command("scale", "Measure how a training run scales with the nodes");
  const auto options = std::make_shared<ScaleOptions>();
  options->keys.access = access;
  add_options(command, *options);
  command.footer(
      "Examples:\n"
      "  trireme scale run.yaml --nodes 1,2,4,8 --cluster site.yaml -J strong.json\n"
      "  trireme scale run.yaml --nodes 1,2,4,8 --cluster site.yaml --weak\n"
      "  trireme scale run.yaml --nodes 1,2 --ranks-per-node 1\n"
      "An interrupted study continues where it stopped when the same command is given again. More "
      "nodes and repetitions can be added to a study; runs that differ in anything else are "
      "refused. Without --cluster, all ranks run on this machine, which simulates nodes but "
      "measures none. docs/studies.md explains the table.");
  command.callback([options, &exit_code] {
    run_interruptibly([&] { scale(*options, exit_code); },
                      [&] { say("scale: interrupted; the same command continues the study"); });
  });
}

}  // namespace trireme
