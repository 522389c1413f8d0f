// Finds out how long this process's Slurm job may still run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/job/job_environment.h"

namespace trireme {

// Parses a time in Slurm's notation: minutes, minutes:seconds, hours:minutes:seconds or
// days-hours[:minutes[:seconds]]. Returns nullopt for UNLIMITED, NOT_SET, INVALID and other text.
std::optional<std::chrono::seconds> parse_slurm_time(std::string_view text);

struct TimeLeft {
  std::optional<std::chrono::seconds> seconds;  // nullopt if there is no limit or it is unknown
  std::string trouble;                          // why the time is unknown, or empty
};

// Uses SLURM_JOB_END_TIME if this version of Slurm sets it, and otherwise asks squeue, which gets a
// few seconds to answer. Call it before MPI starts, and in one process per job only, to spare the
// Slurm controller.
TimeLeft time_left(const SlurmJob& job);

}  // namespace trireme
