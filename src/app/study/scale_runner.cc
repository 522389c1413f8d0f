#include "src/app/study/scale_runner.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "slurm/render/job_script.h"
#include "slurm/render/shell_words.h"
#include "src/app/site/sbatch.h"
#include "src/app/study/launcher.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::chrono::hours kLongestRun{24};
constexpr std::chrono::seconds kSqueuePatience{60};
constexpr std::chrono::seconds kBetweenLooks{2};
constexpr std::size_t kShownOutput = 2000;
constexpr double kGuessedSeconds = 60;  // of a step and a save, for the signal before a job's end

// The checkpoint of a finished run is of no use, and there are many runs.
void remove_checkpoint(const ScaleRun& run) {
  std::filesystem::remove_all(run.folder / "checkpoints");
}

// An unfinished run cannot be continued: its remaining steps would be those of another start.
void start_afresh(const ScaleRun& run) { std::filesystem::remove_all(run.folder); }

void announce(const ScaleStudy& study, std::size_t at, const std::string& what) {
  const ScaleRun& run = study.runs()[at];
  fmt::print(stderr, "scale: {} {} of {}: {}, repetition {}\n", what, at + 1, study.runs().size(),
             counted(run.nodes, "node"), run.repetition);
}

JobRequest request_of(const ScaleStudy& study, const ScaleRun& run) {
  const ScaleOptions& options = study.options();
  JobRequest request;
  request.name = fmt::format("scale-{}-{}", study.model(), run.folder.filename().string());
  request.command = "trireme scale " + shell_word(options.config);
  request.folder = std::filesystem::current_path();
  request.run_dir = run.folder;
  request.config = options.config;
  request.arguments = study.arguments_of(run);
  request.nodes = run.nodes;
  request.time = options.time;
  request.step_seconds = kGuessedSeconds;
  request.save_seconds = kGuessedSeconds;
  return request;
}

// Returns the id in the run's job file, or "".
std::string job_of(const ScaleRun& run) {
  if (!std::filesystem::exists(run.job_file())) {
    return "";
  }
  std::string id = read_file(run.job_file(), 64);
  id.erase(id.find_last_not_of("\n") + 1);
  return id.find_first_not_of("0123456789") == std::string::npos ? id : "";
}

// Returns whether Slurm still has to end the job. A job that squeue does not know has ended.
bool is_active(const std::string& job) {
  const CommandResult result =
      run_command({"squeue", "--noheader", "--jobs=" + job, "--format=%T"}, kSqueuePatience);
  if (result.late || result.code == 127) {
    throw IoError(result.complaint("squeue"));
  }
  for (const char* ended : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL",
                            "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL", "PREEMPTED"}) {
    if (result.output.starts_with(ended)) {
      return false;
    }
  }
  return result.good() && result.output.find_first_not_of(" \n") != std::string::npos;
}

void wait_for_jobs(const ScaleStudy& study) {
  for (std::size_t at = 0; at < study.runs().size(); ++at) {
    const ScaleRun& run = study.runs()[at];
    const std::string job = job_of(run);
    if (run.done() || job.empty()) {
      continue;
    }
    announce(study, at, fmt::format("waiting for job {},", job));
    while (!run.done() && is_active(job)) {
      std::this_thread::sleep_for(kBetweenLooks);
      throw_if_interrupted();
    }
    if (!run.done()) {
      fmt::print(stderr, "scale: job {} has ended without finishing {}\n", job,
                 printable(run.folder.string()));
    }
  }
}

void submit_missing(const ScaleStudy& study) {
  SiteProfile profile = load_site_profile(study.options().cluster);
  profile.node.ranks = study.options().ranks_per_node;
  profile.slurm.requeue = "none";  // a run that continues after a fault measures something else
  std::string last;
  for (std::size_t at = 0; at < study.runs().size(); ++at) {
    const ScaleRun& run = study.runs()[at];
    if (run.done()) {
      continue;
    }
    const std::string old_job = job_of(run);
    if (!old_job.empty() && is_active(old_job)) {
      last = old_job;
      continue;
    }
    start_afresh(run);
    const ScriptFile script(render_job(profile, request_of(study, run)));
    last = sbatch(script, last, false);
    write_file_durably(run.job_file(), last + "\n");
    announce(study, at, fmt::format("submitted job {},", last));
    throw_if_interrupted();
  }
}

// Jobs are not ended with this command, which may have been started only to submit them.
void name_remaining_jobs(const ScaleStudy& study) {
  std::string jobs;
  for (const ScaleRun& run : study.runs()) {
    const std::string job = run.done() ? "" : job_of(run);
    jobs += job.empty() ? "" : " " + job;
  }
  if (!jobs.empty()) {
    say("scale: Slurm still has jobs of this study; to cancel them: scancel" + jobs);
  }
}

std::string end_of(const std::string& text) {
  return text.size() <= kShownOutput ? text : "..." + text.substr(text.size() - kShownOutput);
}

}  // namespace

void run_locally(const ScaleStudy& study) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  for (std::size_t at = 0; at < study.runs().size(); ++at) {
    const ScaleRun& run = study.runs()[at];
    if (run.done()) {
      continue;
    }
    announce(study, at, "run");
    start_afresh(run);
    std::vector<std::string> words = {
        "mpirun", "-n",    std::to_string(run.nodes * study.options().ranks_per_node),
        program,  "train", study.options().config};
    for (const std::string& argument : study.arguments_of(run)) {
      words.push_back(argument);
    }
    const CommandResult result = run_launcher(words, kLongestRun);
    if (!result.good() || !run.done()) {
      const std::string why =
          result.good() ? "it ended before its last step" : result.complaint("mpirun");
      throw IoError(
          fmt::format("the run in {} has failed: {}\n{}\nThe same command continues the study",
                      run.folder.string(), why, end_of(result.errors)));
    }
    remove_checkpoint(run);
  }
}

bool run_on_slurm(const ScaleStudy& study) {
  try {
    submit_missing(study);
    if (!study.options().no_wait) {
      wait_for_jobs(study);
    }
  } catch (const Interrupted&) {
    name_remaining_jobs(study);
    throw;
  }
  bool all = true;
  for (const ScaleRun& run : study.runs()) {
    if (run.done()) {
      remove_checkpoint(run);
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace trireme
