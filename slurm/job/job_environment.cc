#include "slurm/job/job_environment.h"

#include <algorithm>
#include <charconv>

#include "slurm/job/host_list.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

std::optional<std::int64_t> number(const SlurmEnvironment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) {
    throw ConfigError(fmt::format("{}='{}' is not a number, so Slurm did not set it: unset it",
                                  name, printable(*text)));
  }
  return value;
}

std::string word(const SlurmEnvironment& environment, const char* name) {
  return environment(name).value_or("");
}

}  // namespace

std::optional<SlurmJob> slurm_job(const SlurmEnvironment& environment) {
  const std::optional<std::int64_t> id = number(environment, "SLURM_JOB_ID");
  if (!id) {
    return std::nullopt;
  }
  SlurmJob job;
  job.id = *id;
  job.name = word(environment, "SLURM_JOB_NAME");
  if (const std::string nodes = word(environment, "SLURM_JOB_NODELIST"); !nodes.empty()) {
    try {
      job.nodes = expand_host_list(nodes);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("SLURM_JOB_NODELIST: {}", error.what()));
    }
  }
  constexpr std::int64_t kMost = 1'000'000'000;
  job.restart_count =
      static_cast<int>(std::min(number(environment, "SLURM_RESTART_COUNT").value_or(0), kMost));
  job.step = number(environment, "SLURM_STEP_ID");
  job.tasks = number(environment, "SLURM_NTASKS").value_or(0);
  job.step_tasks = number(environment, "SLURM_STEP_NUM_TASKS").value_or(0);
  job.partition = word(environment, "SLURM_JOB_PARTITION");
  job.node = word(environment, "SLURMD_NODENAME");
  job.array_task = number(environment, "SLURM_ARRAY_TASK_ID");
  const std::optional<std::int64_t> array = number(environment, "SLURM_ARRAY_JOB_ID");
  job.command_id = array && job.array_task ? fmt::format("{}_{}", *array, *job.array_task)
                                           : std::to_string(job.id);
  job.end_seconds = number(environment, "SLURM_JOB_END_TIME");
  return job;
}

}  // namespace trireme
