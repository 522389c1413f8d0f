// Turns the options of `trireme launch` into a plan, or throws a ConfigError that says what is
// wrong with them.
#pragma once

#include <string>
#include <vector>

#include "slurm/launch/supervisor.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct LaunchOptions {
  std::string hosts;       // a host file
  int local = 0;           // number of simulated nodes on this machine
  int ranks_per_node = 0;  // 0 for the number from the host file or Slurm, or else 1
  int cpus_per_rank = 0;   // 0 for the default of mpirun or srun
  int spares = 0;
  int min_nodes = 0;  // 0 for all nodes that are wanted
  std::string launcher = "mpirun";
  std::string ssh = "ssh -o BatchMode=yes -o ConnectTimeout=5";
  std::vector<std::string> launcher_arguments;
  std::string ports;  // FIRST-LAST; empty for any
  std::string health;
  std::string site_list;
  std::vector<std::string> run;  // the words "train CONFIG key=value..."
};

// environment: decides, among other things, whether the launch is inside a Slurm job.
LaunchPlan make_launch_plan(const LaunchOptions& options, char** environment);
// Returns where the launch records its start and end.
AuditConfig audit_config_of(const LaunchOptions& options, char** environment);

}  // namespace trireme
