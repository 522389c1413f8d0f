// Reads the times of a training run's steps as a MeasuredResult.
#pragma once

#include <filesystem>

#include "src/base/run_text.h"
#include "src/study/measured_result.h"

namespace trireme {

// folder: run.dir. Throws NotFound if it has no metrics.jsonl, and DataError if no step was logged.
MeasuredResult read_run_result(const std::filesystem::path& folder,
                               const TextReader& reader = plain_reader());

}  // namespace trireme
