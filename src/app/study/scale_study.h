// ScaleStudy is a folder of runs for `trireme scale`: one run for each number of nodes and
// repetition. The runs' own folders are the state of the study, so that it can be interrupted at
// any moment and continued by the same command.
//
//   <study>/study.json        what must not change between the commands that work on the study
//   <study>/n0004-r02/        the second run on 4 nodes (run.dir)
//   <study>/n0004-r02.job     the Slurm job that makes it
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/app/access/key_choice.h"
#include "src/base/config_tree.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct ScaleOptions {
  std::string config, folder, cluster, time, out;
  std::vector<std::string> arguments;  // key=value
  std::vector<int> nodes;
  int ranks_per_node = 0;
  int repetitions = 3;
  std::int64_t steps = 20;
  double efficiency = 80;  // percent, for the knee
  bool weak = false;
  bool no_wait = false;
  bool json = false;
  KeyChoice keys;  // of encrypted runs
};

// One run of the study.
struct ScaleRun {
  int nodes = 1;
  int repetition = 1;
  std::filesystem::path folder;

  std::filesystem::path job_file() const { return folder.string() + ".job"; }
  // Returns whether the run has trained all its steps.
  bool done() const;
};

// These steps of each run come before those that count.
inline constexpr std::int64_t kScaleWarmup = 2;

class ScaleStudy {
 public:
  // Checks the configuration of every run, and opens or creates the folder of the study. Throws
  // ConfigError if a run is impossible or the folder holds another study.
  explicit ScaleStudy(ScaleOptions options);

  const ScaleOptions& options() const { return options_; }
  // Returns all runs in the order in which they should be made. Repetitions are interleaved, in
  // alternating directions, so that a slow drift of the machine affects all numbers of nodes.
  const std::vector<ScaleRun>& runs() const { return runs_; }
  // Returns the key=value arguments of a run.
  std::vector<std::string> arguments_of(const ScaleRun& run) const;
  // Returns what CONFIG, the command line and the study say about a run: what its config.yaml must
  // hold, whatever the site's files add.
  std::vector<ConfigEntry> asked_of(const ScaleRun& run) const;
  // Returns the sequences of a step: in a weak study they grow with the nodes.
  std::int64_t global_batch(int nodes) const;
  const std::string& model() const { return model_; }

 private:
  RunConfig config_of(const ScaleRun& run) const;
  void check_runs();
  void open_folder() const;
  std::vector<ConfigEntry> given_in(const std::vector<std::string>& arguments) const;

  ScaleOptions options_;
  std::int64_t base_batch_ = 0;
  // Length of the schedule as configured: the rate changes as in the whole run, which may warm up
  // for longer than a run of the study takes.
  std::int64_t schedule_steps_ = 0;
  bool sets_threads_ = false;  // whether each rank gets one thread, because all share this machine
  std::string model_;
  std::vector<ScaleRun> runs_;
};

}  // namespace trireme
