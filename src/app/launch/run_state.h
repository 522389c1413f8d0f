// RunState: how a run stands, from the files of its folder alone: nothing is asked of its
// processes, so that any host that sees the folder can tell. Reading changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct RunState {
  // "running": ranks are at work; "starting": a launch is, without ranks yet, or between attempts;
  // "finished"; "stopped": saved, to be started again; "failed"; "interrupted": it ended without
  // saying why, as when it is killed.
  std::string state;
  std::int64_t step = 0;
  std::int64_t steps = 0;              // train.steps; 0: unknown
  std::optional<double> seconds_left;  // of a run at work, by its latest steps
  std::optional<double> loss;
  std::optional<double> step_ms;
  std::optional<double> updated;  // seconds since the epoch: the latest line of metrics or journal
  std::string job;                // of Slurm; empty: none
  std::string reason;             // why it has ended, if it has
  int code = 0;                   // the exit code that goes with that
  struct Fault {
    double time = 0;
    std::int64_t attempt = 0;
    std::string cause;
    std::string what;
  };
  std::optional<Fault> last_fault;  // under `trireme launch`
};

// NotFound where the folder holds no run.
RunState state_of_run(const std::filesystem::path& run);
// Whether a process holds the lock (flock) of this file.
bool is_locked(const std::filesystem::path& path);

std::string to_text(const RunState& state, const std::filesystem::path& run);
nlohmann::ordered_json to_json(const RunState& state, const std::filesystem::path& run);

}  // namespace trireme
