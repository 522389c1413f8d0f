// DONE of a run that train.early_stop ended before train.steps: the reason stands beside the step.
#pragma once

#include <cstdint>
#include <string>

#include "src/train/run/run_directory.h"

namespace trireme {

void mark_done_early(const RunDirectory& run, std::int64_t step, const std::string& reason);

}  // namespace trireme
