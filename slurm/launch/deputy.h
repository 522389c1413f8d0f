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
  std::int64_t job = 0;
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

// Until the supervisor says farewell, or is gone. Returns the exit code.
int run_deputy(const DeputyPlan& plan);

}  // namespace trireme
