// From what the user asks of `trireme launch` to a plan, or to a ConfigError that says what does
// not fit.
#pragma once

#include <string>
#include <vector>

#include "slurm/launch/supervisor.h"

namespace trireme {

struct LaunchOptions {
  std::string hosts;     // a file
  int local = 0;         // so many nodes on this machine
  int ranks_a_node = 0;  // 0: as the host file or Slurm says, else 1
  int cpus_a_rank = 0;   // 0: as mpirun or srun does by itself
  int spares = 0;
  int min_nodes = 0;  // 0: all that are wanted
  std::string launcher = "mpirun";
  std::string ssh = "ssh -o BatchMode=yes -o ConnectTimeout=5";
  std::vector<std::string> launcher_arguments;
  std::string ports;  // FIRST-LAST; empty: any
  std::string health;
  std::string site_list;
  std::vector<std::string> run;  // train CONFIG key=value...
};

// Of this environment: inside a Slurm job, or not.
LaunchPlan make_launch_plan(const LaunchOptions& options, char** environment);

}  // namespace trireme
