// Finds out and logs what may end a training run before its last step: the end of its Slurm job,
// and how long mpirun waits after Ctrl-C.
#pragma once

#include "src/base/log.h"
#include "src/train/ending/job_end.h"
#include "src/train/ending/time_limit.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Returns the time limit of the run whose job ends as rank 0 has learned from Slurm.
TimeLimit time_limit(const RunConfig& config, const JobEnd& end, Log& log);

// Logs what Ctrl-C will do, since mpirun kills the ranks soon after.
void warn_of_grace(Log& log);

}  // namespace trireme
