// Reads the durations of a step and of a save, as measured by earlier starts of a run, from its
// files.
#pragma once

#include <filesystem>
#include <optional>

#include "src/base/damaged_lines.h"
#include "src/base/run_text.h"

namespace trireme {

struct MeasuredTimes {
  std::optional<double> step_seconds;  // the longest of the latest logged steps
  std::optional<double> save_seconds;  // the longest of the latest saves
  DamagedLines damaged_metrics;        // among the last lines of metrics.jsonl
  DamagedLines damaged_log;            // among those of the log
};

// Reads the last lines of <run>/metrics.jsonl and <run>/logs/rank-00000.jsonl. Lines without the
// value are ignored, and so are files that are absent or encrypted for other keys.
MeasuredTimes measured_times(const std::filesystem::path& run_dir,
                             const TextReader& reader = plain_reader());

}  // namespace trireme
