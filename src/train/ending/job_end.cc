#include "src/train/ending/job_end.h"

#include "slurm/job/job_environment.h"
#include "slurm/job/time_left.h"

namespace trireme {

JobEnd find_job_end(const EnvironmentLookup& environment) {
  const std::optional<SlurmJob> job = slurm_job(environment);
  if (!job || environment("PMIX_RANK").value_or("0") != "0") {
    return {};
  }
  const TimeLeft left = time_left(*job);
  JobEnd end;
  end.trouble = left.trouble;
  if (left.seconds) {
    end.time = std::chrono::steady_clock::now() + *left.seconds;
  }
  return end;
}

}  // namespace trireme
