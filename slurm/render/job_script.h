// A job script for a run on a cluster: what is asked for (JobRequest), where (SiteProfile), and the
// text that sbatch takes. Pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "slurm/render/site_profile.h"

namespace trireme {

struct JobRequest {
  std::string name;                      // any text
  std::string command;                   // that asks for it, for a comment
  std::filesystem::path folder;          // absolute: where the run's relative paths begin
  std::filesystem::path run_dir;         // relative to it, or absolute
  std::filesystem::path checkpoint_dir;  // the same; empty: in the run's
  std::string config;                    // the run's file
  std::vector<std::string> arguments;    // key=value
  int nodes = 1;
  int spares = 0;
  bool supervised = false;  // by `trireme launch`; with spares always
  // One entry a task of an array: its own key=value. Empty: no array.
  std::vector<std::vector<std::string>> tasks;
  int tasks_at_once = 0;  // 0: as many as there is room for
  std::string time;       // empty: the profile's
  double step_seconds = 0;
  double save_seconds = 0;
};

// How long before its end a job is told to save: Slurm may be 60 s early or late (its resolution is
// a minute), then one step ends, then the state is saved; both doubled, and some slack.
std::int64_t signal_seconds(double step_seconds, double save_seconds);

// The run folder of an array's task: <run_dir>/task-0003-1f00ba, by its number and its words: runs
// of another array are not taken for those of this one.
std::filesystem::path task_folder(const std::filesystem::path& run_dir, std::size_t task,
                                  const std::vector<std::string>& words);

// ConfigError where the request and the profile do not go together.
std::string render_job(const SiteProfile& profile, const JobRequest& request);

}  // namespace trireme
