#include "slurm/render/job_script.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "slurm/job/time_left.h"
#include "slurm/render/job_template.h"
#include "slurm/render/shell_words.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr double kResolutionSeconds = 60;
constexpr double kSlackSeconds = 30;
constexpr std::int64_t kMostSignalSeconds = 65535;  // sbatch(1), --signal
constexpr std::size_t kMostTasks = 1000;  // MaxArraySize of slurm.conf is 1001 unless changed

std::string number(std::int64_t value) { return std::to_string(value); }
std::string flag(bool on) { return on ? "yes" : ""; }

// Joins lines without a final newline, as the template's line has its own.
std::string lines(const std::vector<std::string>& all) {
  return fmt::format("{}", fmt::join(all, "\n"));
}

void check_request(const SiteProfile& profile, const JobRequest& request, std::int64_t before_end) {
  const std::string& time = request.time.empty() ? profile.slurm.time : request.time;
  const auto limit = parse_slurm_time(time);
  if (!limit) {
    throw ConfigError(
        fmt::format("'{}' is not a time limit; allowed are minutes (90), HH:MM:SS (24:00:00) and "
                    "D-HH:MM:SS (2-00:00:00)",
                    time));
  }
  if (before_end > kMostSignalSeconds || before_end >= limit->count()) {
    throw ConfigError(fmt::format(
        "the job must be signalled {} s before its end (60 + 30 + twice a step and a save), but "
        "its time limit is {} ({} s) and Slurm allows at most {} s: request more time, or give the "
        "real times with --step-seconds and --save-seconds",
        before_end, time, limit->count(), kMostSignalSeconds));
  }
  if (request.tasks.size() > kMostTasks) {
    throw ConfigError(
        fmt::format("--array asks for {} runs, but at most {} are allowed in one array",
                    request.tasks.size(), kMostTasks));
  }
  if (!request.tasks.empty() && profile.slurm.requeue == "chain") {
    throw ConfigError(
        "an array cannot be chained: set slurm.requeue to requeue, or submit without --array");
  }
}

std::string options_text(const SiteProfile& profile) {
  std::vector<std::string> all;
  for (const std::string& option : profile.slurm.options) {
    all.push_back("#SBATCH " + sbatch_value("slurm.options", option));
  }
  return lines(all);
}

std::string setup_text(const SiteProfile::Environment& environment) {
  std::vector<std::string> all;
  for (const std::string& file : environment.source) {
    // Without "./", bash would search PATH for the file.
    const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
    all.push_back(
        fmt::format("# shellcheck source=/dev/null\nsource {} || exit 66", shell_word(path)));
  }
  for (const std::string& module : environment.modules) {
    all.push_back(fmt::format("module load {} || exit 2", shell_word(module)));
  }
  for (const std::string& variable : environment.variables) {
    const std::size_t end = variable.find('=');
    all.push_back(
        fmt::format("export {}={}", variable.substr(0, end), shell_word(variable.substr(end + 1))));
  }
  return lines(all);
}

std::string tasks_text(const JobRequest& request) {
  std::vector<std::string> all;
  for (std::size_t task = 0; task < request.tasks.size(); ++task) {
    std::vector<std::string> words = request.tasks[task];
    const std::filesystem::path folder = task_folder(request.run_dir, task, request.tasks[task]);
    words.push_back("run.dir=" + folder.string());
    if (!request.checkpoint_dir.empty()) {
      words.push_back("checkpoint.dir=" +
                      task_folder(request.checkpoint_dir, task, request.tasks[task]).string());
    }
    all.push_back(fmt::format("  {}) arguments+=({}); run_dir={} ;;", task, shell_words(words),
                              shell_word((request.folder / folder).string())));
  }
  return lines(all);
}

// Returns the option of sbatch that requests the GPUs, or "".
std::string gpu_request(const SiteProfile::Node& node) {
  if (node.gpus == 0) {
    return "";
  }
  const std::string type = node.gpu_type.empty() ? "" : node.gpu_type + ":";
  if (node.gpu_request == "per-task") {
    return fmt::format("--gpus-per-task={}{}", type, node.gpus / node.ranks);
  }
  if (node.gpu_request == "mps") {
    return fmt::format("--gres=mps:{}{}", type, node.mps_shares);
  }
  return node.gpu_request == "gres" ? fmt::format("--gres=gpu:{}{}", type, node.gpus)
                                    : fmt::format("--gpus-per-node={}{}", type, node.gpus);
}

std::string srun_binding(const std::string& binding) {
  return binding == "core" ? "cores" : binding == "numa" ? "ldoms" : "none";
}

// Returns the options that make `trireme launch` bind the ranks. By default, mpirun would bind each
// of two ranks to one core.
std::vector<std::string> supervised_binding(const SiteProfile& profile) {
  const SiteProfile::Launch& launch = profile.launch;
  if (launch.binding == "core") {
    return {fmt::format("--cpus-per-rank={}", profile.node.cpus_per_rank)};
  }
  if (launch.launcher == "srun") {
    return {"--launcher-arg=--cpu-bind=" + srun_binding(launch.binding)};
  }
  return {"--launcher-arg=--bind-to", "--launcher-arg=" + launch.binding};
}

// The check refuses a scratch folder that another user has made first in a shared place.
std::string health_command(const SiteProfile& profile) {
  if (profile.node.scratch.empty()) {
    return profile.launch.health;
  }
  const std::string scratch =
      R"(mkdir -p -m 700 -- "$TMPDIR" && test -O "$TMPDIR" -a ! -L "$TMPDIR")";
  return profile.launch.health.empty() ? scratch : scratch + " || exit 1; " + profile.launch.health;
}

// Returns arguments for mpirun or srun, or for `trireme launch` to pass on to them.
std::vector<std::string> launch_arguments(const SiteProfile& profile, bool supervised) {
  const SiteProfile::Launch& launch = profile.launch;
  std::vector<std::string> all =
      supervised ? supervised_binding(profile) : std::vector<std::string>{};
  if (!launch.gpu_bind.empty()) {
    all.push_back((supervised ? "--launcher-arg=" : "") + ("--gpu-bind=" + launch.gpu_bind));
  }
  for (const std::string& argument : launch.arguments) {
    all.push_back((supervised ? "--launcher-arg=" : "") + argument);
  }
  if (supervised && !health_command(profile).empty()) {
    all.push_back("--health=" + health_command(profile));
  }
  if (supervised && !launch.site_list.empty()) {
    all.push_back("--site-list=" + launch.site_list);
  }
  return all;
}

void add_launch(TemplateValues& values, const SiteProfile& profile, const JobRequest& request) {
  const SiteProfile::Launch& launch = profile.launch;
  const bool bound = launch.binding == "core";
  const bool supervised = request.supervised || request.spares > 0;
  values["supervised"] = flag(supervised);
  values["reads_reason"] = flag(!supervised || profile.slurm.requeue == "chain");
  values["spares"] = number(request.spares);
  values["launcher"] = launch.launcher;
  values["srun"] = flag(launch.launcher == "srun");
  values["mpi"] = sbatch_value("launch.mpi", launch.mpi);
  values["srun_binding"] = srun_binding(launch.binding);
  values["binding"] = launch.binding;
  values["elements"] = bound && profile.node.cpus_per_rank > 1
                           ? fmt::format(":PE={}", profile.node.cpus_per_rank)
                           : "";
  for (const std::string& argument : launch_arguments(profile, supervised)) {
    values["launch_arguments"] += shell_word(argument) + " ";
  }
  values.try_emplace("launch_arguments");
  values["world"] = number(std::int64_t{request.nodes} * profile.node.ranks);
}

}  // namespace

std::int64_t signal_seconds(double step_seconds, double save_seconds) {
  const double seconds = kResolutionSeconds + kSlackSeconds +
                         2 * (std::max(step_seconds, 0.0) + std::max(save_seconds, 0.0));
  return static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9)));
}

std::filesystem::path task_folder(const std::filesystem::path& run_dir, std::size_t task,
                                  const std::vector<std::string>& words) {
  const std::string text = shell_words(words);
  const std::string digest = hex64(xxh3(text.data(), static_cast<std::int64_t>(text.size())));
  return run_dir / fmt::format("task-{:04}-{}", task, digest.substr(0, 6));
}

std::string render_job(const SiteProfile& profile, const JobRequest& request) {
  const std::int64_t before_end = signal_seconds(request.step_seconds, request.save_seconds);
  check_request(profile, request, before_end);
  std::vector<std::string> words = {"train", request.config};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  const SiteProfile::Slurm& slurm = profile.slurm;
  const std::string at_once =
      request.tasks_at_once > 0 ? fmt::format("%{}", request.tasks_at_once) : "";
  TemplateValues values = {
      {"title", shell_comment(fmt::format("Trains {}", request.config))},
      {"command", shell_comment(request.command)},
      {"job_name", sbatch_name(request.name)},
      {"partition", sbatch_value("slurm.partition", slurm.partition)},
      {"account", sbatch_value("slurm.account", slurm.account)},
      {"qos", sbatch_value("slurm.qos", slurm.qos)},
      {"memory", sbatch_value("slurm.memory", slurm.memory)},
      {"time", sbatch_value("--time", request.time.empty() ? slurm.time : request.time)},
      {"nodes", number(std::int64_t{request.nodes} + request.spares)},
      {"ranks", number(profile.node.ranks)},
      {"cpus", number(profile.node.cpus_per_rank)},
      {"constraint", sbatch_value("slurm.constraint", slurm.constraint)},
      {"gpu_request", gpu_request(profile.node)},
      {"exclusive", flag(slurm.exclusive)},
      {"requeue", flag(slurm.requeue == "requeue")},
      {"chain", flag(slurm.requeue == "chain")},
      {"max_restarts", number(slurm.max_restarts)},
      {"options", options_text(profile)},
      {"array",
       request.tasks.empty() ? "" : fmt::format("0-{}{}", request.tasks.size() - 1, at_once)},
      {"tasks", tasks_text(request)},
      {"signal_seconds", number(before_end)},
      {"folder", shell_word(request.folder.string())},
      {"setup", setup_text(profile.environment)},
      {"program", shell_word(profile.environment.program)},
      {"run_dir", shell_word((request.folder / request.run_dir).string())},
      {"arguments", shell_words(words)},
      {"scratch", profile.node.scratch.empty() ? "" : shell_word(profile.node.scratch)}};
  add_launch(values, profile, request);
  return fill_template(job_templates().at("job"), values);
}

}  // namespace trireme
