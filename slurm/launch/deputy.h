// The deputy: a process on another node of a Slurm job than the supervisor's. When the supervisor
// is gone without a word, because its node is, nobody else would ever end or requeue the job: the
// allocation would leak until its time limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct DeputyPlan {
  std::string job = {};  // as commands of Slurm are told: "42", "40_2"
  std::string node = {};
  std::vector<std::string> addresses = {};  // of the supervisor
  int port = 0;
  std::string secret = {};
};

// What `scontrol show job` says of the job, as far as it matters here.
enum class JobState { running, ended, cancelled, unknown };
JobState parse_job_state(std::string_view scontrol_output);
// Whether the job is to be requeued after its supervisor is gone. Who cancels a job means it.
bool should_requeue(JobState state);

struct JobRecord {
  JobState state = JobState::unknown;
  bool may_be_requeued = true;  // not submitted with --no-requeue
  bool has_failed = false;      // or is about to end: it may do so again and again
  std::int64_t restarts = 0;    // those after saves, too
};
JobRecord parse_job(std::string_view scontrol_output);
// Of a job whose script fails each time.
inline constexpr std::int64_t kMostRestartsOfFailures = 5;

// Until the supervisor says farewell, or is gone. Returns the exit code.
int run_deputy(const DeputyPlan& plan);

}  // namespace trireme
