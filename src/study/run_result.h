// Reads the times of a training run's steps as a MeasuredResult.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/run_text.h"
#include "src/study/measured_result.h"

namespace trireme {

// folder: run.dir. Throws NotFound if it has no metrics.jsonl, and DataError if no step was logged.
MeasuredResult read_run_result(const std::filesystem::path& folder,
                               const TextReader& reader = plain_reader());

// Returns "4 ranks on 1 node", "2 ranks on each of 2 nodes" or "1 to 3 ranks on each of 2 nodes".
// ranks: of each node; not empty.
std::string spread_text(const std::vector<std::int64_t>& ranks);

// The name of the circumstance that holds this text, if the log of the run tells it.
inline constexpr const char* kSpread = "ranks on nodes";

}  // namespace trireme
