#include "src/app/site/slurm_command.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/core.h>
#include <unistd.h>

#include "slurm/render/job_script.h"
#include "slurm/render/measured_times.h"
#include "slurm/render/shell_words.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/number_check.h"
#include "src/app/command/written_files.h"
#include "src/app/site/job_gpus.h"
#include "src/app/site/sbatch.h"
#include "src/app/site/sweep.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/train/run/config_files.h"
#include "src/train/run/layout.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

constexpr std::size_t kMostTasks = 1000;
// These estimates stand for a save and a step that have not been measured.
constexpr double kGuessedSaveSeconds = 60;
constexpr double kGuessedStepSeconds = 15;

struct SlurmOptions {
  std::string config, cluster, output, name, time, after;
  std::vector<std::string> arguments, axes;
  int nodes = 1, spares = 0, chain = 1, at_once = 0;
  bool supervised = false, test_only = false;
  double step_seconds = 0, save_seconds = 0;
  KeyChoice keys;
};

// Returns the configuration of one run of the job. Throws ConfigError if its layout does not fit
// the nodes, or if the script (-o) would replace a file that the configuration names.
RunConfig checked_config(const SlurmOptions& options, const std::vector<std::string>& more,
                         const SiteProfile& profile) {
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ConfigSources sources{
      .file = options.config, .arguments = arguments, .environment = environ};
  RunConfig config = load_run_config(sources).config;
  check_not_read({{"-o", options.output}}, files_of_config(sources, config));
  (void)make_layout(config, options.nodes * profile.node.ranks, profile.node.ranks);
  return config;
}

double first_of(double given, double configured, std::optional<double> measured, double guess) {
  return given > 0 ? given : configured > 0 ? configured : measured.value_or(guess);
}

// Returns the command as typed, "trireme slurm render ...", for a comment in the script. The file
// is read as a stream because files in /proc have no size.
std::string command_line() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> all;
  for (std::string word; std::getline(words, word, '\0');) {
    all.push_back(word);
  }
  if (!all.empty()) {
    all[0] = std::filesystem::path(all[0]).filename();
  }
  return shell_words(all);
}

JobRequest make_request(const SlurmOptions& options, const SiteProfile& profile) {
  JobRequest request;
  for (const std::string& axis : options.axes) {
    if (axis.starts_with("run.dir=")) {
      throw ConfigError(fmt::format(
          "--array {}: each run of an array gets a folder of its own in run.dir: choose "
          "that with run.dir=DIR, and give --array the keys in which the runs differ",
          axis));
    }
  }
  request.tasks = combinations(options.axes, options.arguments, kMostTasks);
  if (options.at_once > 0 && options.axes.empty()) {
    throw ConfigError("--at-once limits the runs of an array: give --array too");
  }
  const RunConfig config = checked_config(options, {}, profile);
  for (const auto& task : request.tasks) {
    check_gpus_of_job(checked_config(options, task, profile), profile, options.cluster);
  }
  if (request.tasks.empty()) {
    check_gpus_of_job(config, profile, options.cluster);
  }
  const std::string stem = std::filesystem::path(options.config).stem();
  request.name = !options.name.empty()      ? options.name
                 : !config.run_name.empty() ? config.run_name
                                            : stem;
  request.command = command_line();
  request.folder = std::filesystem::current_path();
  request.run_dir = config.run_dir;
  request.checkpoint_dir = config.checkpoint.dir;
  request.config = options.config;
  request.arguments = options.arguments;
  request.nodes = options.nodes;
  request.spares = options.spares;
  request.supervised = options.supervised;
  request.tasks_at_once = options.at_once;
  request.time = options.time;
  KeyChoice keys = options.keys;
  keys.uris = config.encryption.keys;
  const MeasuredTimes measured = measured_times(config.run_dir, keys.reader());
  const RunDirectory run(config.run_dir);
  warn_of(measured.damaged_metrics, run.metrics());
  warn_of(measured.damaged_log, run.log(0));
  request.step_seconds = first_of(options.step_seconds, profile.slurm.step_seconds,
                                  measured.step_seconds, kGuessedStepSeconds);
  request.save_seconds = first_of(options.save_seconds, profile.slurm.save_seconds,
                                  measured.save_seconds, kGuessedSaveSeconds);
  return request;
}

SiteProfile load_profile(const SlurmOptions& options) {
  SiteProfile profile = load_site_profile(options.cluster);
  if (options.chain > 1) {
    profile.slurm.requeue = "chain";
  }
  return profile;
}

void render(const SlurmOptions& options) {
  const SiteProfile profile = load_profile(options);
  const std::string script = render_job(profile, make_request(options, profile));
  if (options.output.empty()) {
    fmt::print("{}", script);
  } else {
    write_named_file(options.output, script);
  }
}

void submit(const SlurmOptions& options) {
  const SiteProfile profile = load_profile(options);
  const ScriptFile script(render_job(profile, make_request(options, profile)));
  if (profile.slurm.requeue == "chain" && options.chain == 1 && options.after.empty()) {
    fmt::print(stderr,
               "trireme: submitting a single job although slurm.requeue is chain in {}; --chain N "
               "submits N jobs, each after the end of the one before\n",
               printable(options.cluster));
  }
  std::string job = options.after;
  for (int link = 0; link < options.chain; ++link) {
    job = sbatch(script, job, options.test_only);
    if (!options.test_only) {
      fmt::print("{}\n", printable(job));
    }
  }
}

void add_options(CommandLine& command, SlurmOptions& options) {
  command.add_option("CONFIG", options.config, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options.arguments,
                     "Configuration keys to override, as in train.steps=100");
  command
      .add_option("--cluster", options.cluster,
                  "The site's profile: a file like those in configs/site/")
      .required()
      .type_name("FILE");
  command.add_option("--nodes", options.nodes, "Nodes that train").check(integer_within(1, 100000));
  command
      .add_option("--spares", options.spares,
                  "Additional nodes that replace nodes that fail; implies --supervised")
      .check(integer_within(0, 10000));
  command.add_flag("--supervised", options.supervised,
                   "Start the run with trireme launch, which relaunches it after a failure");
  command
      .add_option("--array", options.axes,
                  "Submit an array with one run per value; several --array: one per combination")
      .one_value_per_use()
      .type_name("KEY=V1,V2,...");
  command
      .add_option("--at-once", options.at_once,
                  "Runs of an array at the same time (default: no limit)")
      .check(positive_count());
  command
      .add_option("--chain", options.chain,
                  "Jobs in a chain; each continues the run when the one before it has ended")
      .check(integer_within(1, 1000));
  command
      .add_option("--time", options.time,
                  "Time limit of a job: minutes, HH:MM:SS or D-HH:MM:SS (default: the profile's)")
      .type_name("TIME");
  command
      .add_option("--job-name", options.name,
                  "Name of the job (default: run.name, else the name of CONFIG)")
      .type_name("NAME");
  command
      .add_option("--step-seconds", options.step_seconds,
                  "Time of a step (default: the profile's, else as measured before, else 15)")
      .check(non_negative_number())
      .type_name("SECONDS");
  command
      .add_option("--save-seconds", options.save_seconds,
                  "Time of a save (default: the profile's, else as measured before, else 60)")
      .check(non_negative_number())
      .type_name("SECONDS");
}

}  // namespace

void add_slurm_command(CommandLine& app, const AccessSource& access) {
  CommandLine& slurm = app.add_command("slurm", "Write and submit job scripts for Slurm");
  slurm.require_command();
  slurm.footer("Example:\n  trireme slurm submit run.yaml --cluster site.yaml --nodes 8");
  const auto options = std::make_shared<SlurmOptions>();
  options->keys.access = access;
  CommandLine& to_text = slurm.add_command("render", "Print the job script of a run");
  add_options(to_text, *options);
  to_text.add_option("-o,--output", options->output, "Write the script to FILE instead")
      .type_name("FILE")
      .written();
  to_text.footer(
      "Examples:\n"
      "  trireme slurm render run.yaml --cluster cpu.yaml --nodes 8 -o run.sbatch\n"
      "  trireme slurm render run.yaml --cluster cpu.yaml \\\n"
      "    --array optimizer.lr=1e-3,3e-4 --array train.seed=1,2,3");
  to_text.callback([options] { render(*options); });
  CommandLine& to_slurm = slurm.add_command("submit", "Submit the job script; prints the job ID");
  add_options(to_slurm, *options);
  to_slurm.add_flag("--test-only", options->test_only,
                    "Submit nothing; print when Slurm would start the job");
  to_slurm.add_option("--after", options->after, "Start after the end of job ID").type_name("ID");
  to_slurm.footer(
      "Examples:\n"
      "  trireme slurm submit run.yaml --cluster cpu.yaml --nodes 8 --spares 1\n"
      "  trireme slurm submit run.yaml --cluster gpu.yaml --nodes 2 --chain 6");
  to_slurm.callback([options] { submit(*options); });
}

}  // namespace trireme
