// How long this process's Slurm job may still run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/job/job_environment.h"

namespace trireme {

// A time as Slurm writes and reads it: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours[:minutes[:seconds]]. Nothing for UNLIMITED, NOT_SET, INVALID and all else.
std::optional<std::chrono::seconds> parse_slurm_time(std::string_view text);

struct TimeLeft {
  std::optional<std::chrono::seconds> seconds;  // none: no limit, or nobody knows
  std::string trouble;                          // why nobody knows; else empty
};

// From SLURM_JOB_END_TIME, where this Slurm sets it, else from squeue, which is given a few seconds
// to answer: before MPI starts, and in one process of a job only, for the controller's sake.
TimeLeft time_left(const SlurmJob& job);

}  // namespace trireme
