// Makes the job script of a run from a request (JobRequest) and a description of the cluster
// (SiteProfile). Pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "slurm/render/site_profile.h"

namespace trireme {

struct JobRequest {
  std::string name;                      // may be any text
  std::string command;                   // the command that made the request, for a comment
  std::filesystem::path folder;          // absolute; the run's relative paths begin here
  std::filesystem::path run_dir;         // absolute or relative to `folder`
  std::filesystem::path checkpoint_dir;  // the same; empty if it is inside run_dir
  std::string config;                    // the run's configuration file
  std::vector<std::string> arguments;    // in the form key=value
  int nodes = 1;
  int spares = 0;
  bool supervised = false;  // by `trireme launch`, which spares imply
  // One entry per task of an array: its own key=value arguments. Empty if the job is no array.
  std::vector<std::vector<std::string>> tasks;
  int tasks_at_once = 0;  // 0 for as many as possible
  std::string time;       // empty for the profile's time
  double step_seconds = 0;
  double save_seconds = 0;
};

// Returns how long before its end a job must be told to save. Slurm may be 60 s early or late; then
// one step has to end and the state has to be saved. These two are doubled, and some slack is
// added.
std::int64_t signal_seconds(double step_seconds, double save_seconds);

// Returns the run folder of one task of an array, such as <run_dir>/task-0003-1f00ba. The name
// contains the task's number and a digest of its arguments, which keeps the runs of other arrays
// apart.
std::filesystem::path task_folder(const std::filesystem::path& run_dir, std::size_t task,
                                  const std::vector<std::string>& words);

// Throws ConfigError if the request and the profile contradict each other.
std::string render_job(const SiteProfile& profile, const JobRequest& request);

}  // namespace trireme
