// RunState describes the state of a run, from the files in its folder and in its checkpoint folder
// only. It asks none of the run's processes, so it works on any host that sees the folders, and it
// changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/base/damaged_lines.h"
#include "src/base/run_text.h"

namespace trireme {

struct RunState {
  // "running": ranks are at work. "starting": a launch is active, but its ranks have not started or
  // it is between attempts. "finished". "stopped": saved, to be started again. "failed".
  // "interrupted": ended without a save, by a second signal, or without a reason, for example
  // because it was killed.
  std::string state;
  std::int64_t step = 0;
  std::int64_t steps = 0;              // train.steps; 0 if unknown
  std::optional<double> seconds_left;  // of a running run, estimated from its latest steps
  // These are the fields of the newest line of metrics.jsonl, which is that of `loss_step`.
  std::optional<double> loss;
  std::optional<double> loss_mean;  // the loss that the log prints
  std::int64_t loss_step = 0;
  std::optional<double> step_ms;
  std::string device = {};             // what the ranks compute on, such as "cpu"; empty if unknown
  bool metrics_are_encrypted = false;  // and no key opens them, so that these fields are unknown
  std::string why_no_metrics = {};     // what keeps them from being read, in that case
  DamagedLines damaged_metrics = {};   // among the last lines of metrics.jsonl
  DamagedLines damaged_journal = {};   // among those of journal.jsonl
  // This is the time of the latest line of metrics or journal, in seconds since the epoch.
  std::optional<double> updated;
  std::string job;     // id of the Slurm job, or empty
  std::string reason;  // why it has ended, or empty
  int code = 0;        // the exit code that belongs to `reason`
  bool exit_reason_is_damaged = false;
  struct Fault {
    double time = 0;
    std::int64_t attempt = 0;
    std::string cause;
    std::string what;
  };
  std::optional<Fault> last_fault;  // recorded by `trireme launch` only
};

// Throws NotFound if there is no such folder, and PolicyError if its files may not be read.
void check_run_folder(const std::filesystem::path& run);
// Throws NotFound if the folder contains no run, or the errors of check_run_folder.
RunState state_of_run(const std::filesystem::path& run, const TextReader& reader = plain_reader());

std::string to_text(const RunState& state, const std::filesystem::path& run);
nlohmann::ordered_json to_json(const RunState& state, const std::filesystem::path& run);

}  // namespace trireme
