#include "slurm/render/site_profile.h"

#include <algorithm>

#include "slurm/job/time_left.h"
#include "slurm/render/shell_words.h"
#include "src/base/config_binder.h"
#include "src/base/error.h"

namespace trireme {
namespace {

bool is_variable(const std::string& text) {
  const std::size_t end = text.find('=');
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return end != std::string::npos && end > 0 && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), fits);
}

// Reports a value that is not allowed in an #SBATCH line.
void check_value(ConfigBinder& b, const std::string& key, const std::string& value) {
  try {
    (void)sbatch_value(key, value);
  } catch (const ConfigError& error) {
    b.refuse(key, error.what());
  }
}

void bind(ConfigBinder& b, SiteProfile::Slurm& c) {
  b.text("slurm.partition", c.partition, "sbatch --partition; empty: Slurm's default");
  b.text("slurm.account", c.account, "sbatch --account; empty: Slurm's default");
  b.text("slurm.qos", c.qos, "sbatch --qos; empty: Slurm's default");
  b.text("slurm.constraint", c.constraint, "sbatch --constraint, such as a100; empty: none");
  b.text("slurm.time", c.time, "time limit of a job: minutes, HH:MM:SS or D-HH:MM:SS");
  b.text("slurm.memory", c.memory, "sbatch --mem, per node; 0: all; empty: Slurm's default");
  b.boolean("slurm.exclusive", c.exclusive, "whether a job has its nodes to itself");
  b.text("slurm.requeue", c.requeue,
         "after a save: requeue the job, start its successor (chain), or do nothing (none)")
      .one_of({"requeue", "chain", "none"});
  b.integer("slurm.max_restarts", c.max_restarts, "requeues after faults").at_least(0);
  b.real("slurm.step_seconds", c.step_seconds,
         "time of a step, for the signal before the time limit; 0: as measured")
      .at_least(0);
  b.real("slurm.save_seconds", c.save_seconds,
         "time of a save, for the signal before the time limit; 0: as measured")
      .at_least(0);
  b.texts("slurm.options", c.options, "other options of sbatch, such as --constraint=ib");
  for (const auto& [key, value] :
       {std::pair("slurm.partition", c.partition), std::pair("slurm.account", c.account),
        std::pair("slurm.qos", c.qos), std::pair("slurm.memory", c.memory),
        std::pair("slurm.constraint", c.constraint)}) {
    check_value(b, key, value);
  }
  if (!parse_slurm_time(c.time)) {
    b.refuse("slurm.time", fmt::format("'{}' is not a time limit; allowed are minutes (90), "
                                       "HH:MM:SS (24:00:00) and D-HH:MM:SS (2-00:00:00)",
                                       c.time));
  }
  for (const std::string& option : c.options) {
    check_value(b, "slurm.options", option);
    if (!option.starts_with("--")) {
      b.refuse("slurm.options", fmt::format("'{}' does not begin with --", option));
    }
  }
}

void bind(ConfigBinder& b, SiteProfile::Node& c) {
  b.integer("node.ranks", c.ranks, "ranks per node").at_least(1).at_most(4096);
  b.integer("node.cpus_per_rank", c.cpus_per_rank, "processors per rank").at_least(1).at_most(4096);
  b.integer("node.gpus", c.gpus, "GPUs per node; 0: no request").at_least(0).at_most(64);
  b.text("node.gpu_type", c.gpu_type,
         "type of the GPUs as in gres.conf, such as a100 or 1g.10gb (MIG); empty: any");
  b.text("node.gpu_request", c.gpu_request,
         "how GPUs are requested: --gpus-per-node, --gpus-per-task, --gres=gpu, or --gres=mps")
      .one_of({"per-node", "per-task", "gres", "mps"});
  b.integer("node.mps_shares", c.mps_shares,
            "shares of one GPU under CUDA's multi-process service, for gpu_request: mps")
      .at_least(0)
      .at_most(10000);
  check_value(b, "node.gpu_type", c.gpu_type);
  if (c.gpu_type.find_first_of(":,=") != std::string::npos) {
    b.refuse("node.gpu_type", fmt::format("'{}' is not the type of a GPU", c.gpu_type));
  }
  if (c.gpu_request == "per-task" && c.ranks > 0 && c.gpus % c.ranks != 0) {
    b.refuse("node.gpu_request",
             fmt::format("per-task needs as many GPUs for each rank, but node.gpus is {} and "
                         "node.ranks {}",
                         c.gpus, c.ranks));
  }
  if (c.gpu_request == "mps" && (c.gpus != 1 || c.mps_shares == 0)) {
    b.refuse("node.gpu_request", "mps needs node.gpus: 1 and node.mps_shares");
  }
  b.text("node.scratch", c.scratch,
         "folder on the node's own disk for the files of a job; empty: none");
  if (!c.scratch.empty() && c.scratch.front() != '/') {
    b.refuse("node.scratch", fmt::format("'{}' is not an absolute path", c.scratch));
  }
}

void bind(ConfigBinder& b, SiteProfile::Launch& c) {
  b.text("launch.launcher", c.launcher, "program that starts the ranks").one_of({"mpirun", "srun"});
  b.text("launch.mpi", c.mpi, "srun --mpi");
  b.text("launch.binding", c.binding, "what a rank is bound to").one_of({"core", "numa", "none"});
  b.text("launch.gpu_bind", c.gpu_bind,
         "srun --gpu-bind: closest, single:1, per_task:1, none, ...; empty: Slurm's default");
  check_value(b, "launch.gpu_bind", c.gpu_bind);
  b.texts("launch.arguments", c.arguments, "further arguments of mpirun or srun");
  b.text("launch.health", c.health, "supervised jobs: command that checks a node; empty: none");
  b.text("launch.site_list", c.site_list,
         "supervised jobs: file of nodes that failed; empty: none");
  check_value(b, "launch.mpi", c.mpi);
}

void bind(ConfigBinder& b, SiteProfile::Environment& c) {
  b.text("environment.program", c.program, "path of the program, valid on all nodes");
  b.texts("environment.source", c.source, "shell files that a job sources first");
  b.texts("environment.modules", c.modules, "modules that a job loads");
  b.texts("environment.variables", c.variables,
          "environment variables that a job sets, as NAME=VALUE");
  for (const std::string& module : c.modules) {
    check_value(b, "environment.modules", module);
    if (module.empty() || module.front() == '-') {
      b.refuse("environment.modules", fmt::format("'{}' is not a module name", module));
    }
  }
  for (const std::string& variable : c.variables) {
    if (!is_variable(variable)) {
      b.refuse("environment.variables", fmt::format("'{}' is not NAME=VALUE", variable));
    }
  }
}

}  // namespace

SiteProfile load_site_profile(const std::filesystem::path& file) {
  SiteProfile profile;
  ConfigBinder b;
  b.add_file(file);
  bind(b, profile.slurm);
  bind(b, profile.node);
  bind(b, profile.launch);
  bind(b, profile.environment);
  // Slurm does not know the ranks that mpirun starts: it would give each node the GPUs of one task.
  if (profile.launch.launcher == "mpirun" && profile.node.gpu_request == "per-task") {
    b.refuse("node.gpu_request", "per-task needs launch.launcher: srun");
  }
  if (profile.launch.launcher == "mpirun" && !profile.launch.gpu_bind.empty()) {
    b.refuse("launch.gpu_bind", "it needs launch.launcher: srun");
  }
  b.finish();
  return profile;
}

}  // namespace trireme
