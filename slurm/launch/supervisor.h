// The supervisor of a launch: carries out what the course (slurm/policy/course.h) decides: starts
// agents and ranks, listens to them, writes the journal. No MPI; one thread,
// but for what may have to wait for a disk; one a process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/launch/commands.h"
#include "slurm/policy/course.h"

namespace trireme {

struct LaunchPlan {
  LaunchSetting setting;  // but for its number, which the supervisor draws
  CoursePlan course;
  std::vector<NodeSpec> nodes;
  std::filesystem::path run_folder;
  std::filesystem::path checkpoint_folder;
  std::string health;               // a command of the shell, for every node; empty: none
  std::filesystem::path site_list;  // empty: none
  std::string slurm_job;            // as its commands are told; empty: outside of Slurm
  std::string batch_node;           // in Slurm: the node we are on
};

// Until the run is finished, given up or asked to stop. Returns the exit code.
int supervise(const LaunchPlan& plan);

}  // namespace trireme
