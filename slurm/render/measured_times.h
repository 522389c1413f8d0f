// Reads the durations of a step and of a save, as measured by earlier starts of a run, from its
// files.
#pragma once

#include <filesystem>
#include <optional>

#include "src/base/run_text.h"

namespace trireme {

struct MeasuredTimes {
  std::optional<double> step_seconds;  // the longest of the latest logged steps
  std::optional<double> save_seconds;  // the longest of the latest saves
};

// Reads <run>/metrics.jsonl and <run>/logs/rank-00000.jsonl. Lines that are not JSON or lack the
// value are ignored, since the last line is often torn, and so are files that are encrypted for
// other keys.
MeasuredTimes measured_times(const std::filesystem::path& run_dir,
                             const TextReader& reader = plain_reader());

}  // namespace trireme
