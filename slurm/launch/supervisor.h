// The supervisor of a launch carries out what Course (slurm/policy/course.h) decides: it starts
// agents and ranks, receives their reports and writes the journal. It does not use MPI. There is
// one per process, with one thread and further threads for work that may block on a disk.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/launch/commands.h"
#include "slurm/policy/course.h"

namespace trireme {

struct LaunchPlan {
  LaunchSetting setting;  // without the launch id, which the supervisor generates
  CoursePlan course;
  std::vector<NodeSpec> nodes;
  std::filesystem::path run_folder;
  std::filesystem::path checkpoint_folder;
  std::string health;               // a shell command to run on every node; may be empty
  std::filesystem::path site_list;  // may be empty
  std::string slurm_job;            // the job's id for Slurm's commands; empty outside Slurm
  std::string batch_node;           // in Slurm, the node on which this process runs
  std::string on_event = {};        // a shell command to run for events; may be empty
  double event_deadline = 30;       // seconds until it is killed
  bool json_log = false;            // whether the lines on stderr are JSON objects
};

// Runs until the run is finished or given up, or a stop is requested. Returns the exit code.
int supervise(const LaunchPlan& plan);

}  // namespace trireme
