// What earlier starts of a run have measured, from the files that it left: how long a step and a
// save take.
#pragma once

#include <filesystem>
#include <optional>

namespace trireme {

struct MeasuredTimes {
  std::optional<double> step_seconds;  // the longest of the last logged ones
  std::optional<double> save_seconds;  // the longest of the last saves
};

// From <run>/metrics.jsonl and <run>/logs/rank-00000.jsonl. Lines that are no JSON, or say
// something else, are passed over: a torn last line is normal.
MeasuredTimes measured_times(const std::filesystem::path& run_dir);

}  // namespace trireme
