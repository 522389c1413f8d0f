// The deputy is a process on another node of a Slurm job than the supervisor's. If the supervisor's
// node dies, the deputy requeues or cancels the job, which would otherwise hold its nodes until its
// time limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/wire/launch_secret.h"

namespace trireme {

struct DeputyPlan {
  std::string job = {};  // the id for Slurm's commands, such as "42" or "40_2"
  std::string node = {};
  std::vector<std::string> addresses = {};  // of the supervisor's host
  int port = 0;
  LaunchSecret secret = {};
};

// Says in which state the job is according to `scontrol show job`, as far as it matters here.
enum class JobState { running, ended, cancelled, unknown };
JobState parse_job_state(std::string_view scontrol_output);
// Returns whether the job should be requeued after its supervisor is gone. A cancelled job should
// not.
bool should_requeue(JobState state);

struct JobRecord {
  JobState state = JobState::unknown;
  bool may_be_requeued = true;  // false for jobs submitted with --no-requeue
  bool has_failed = false;      // the job has failed or is completing, and may fail again
  std::int64_t restarts = 0;    // including requeues after a save
};
JobRecord parse_job(std::string_view scontrol_output);
// Limits the restarts of a job whose script fails each time.
inline constexpr std::int64_t kMostRestartsOfFailures = 5;

// Runs until the supervisor says goodbye or is gone. Returns the exit code.
int run_deputy(const DeputyPlan& plan);

}  // namespace trireme
