// Writes DONE for a run that train.early_stop ended before train.steps, with the step and the
// reason. Called on rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "src/train/run/run_directory.h"

namespace trireme {

void mark_done_early(const RunDirectory& run, std::int64_t step, const std::string& reason);

}  // namespace trireme
