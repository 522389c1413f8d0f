#include "slurm/launch/run_files.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "slurm/job/job_environment.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/is_locked.h"
#include "src/base/json_lines.h"
#include "src/base/lock_mark.h"
#include "src/base/regular_file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

std::string contents_of(const fs::path& path) {
  constexpr std::int64_t kMostBytes = 1 << 20;
  try {
    return read_file(path, kMostBytes);
  } catch (const Error&) {
    return "";
  }
}

// Returns the last line of metrics.jsonl; empty if there is none.
nlohmann::json last_metrics(const fs::path& run) {
  constexpr std::int64_t kSeveralLines = 16 << 10;
  try {
    const std::vector<nlohmann::json> lines =
        last_json_lines(run / "metrics.jsonl", kSeveralLines, is_metrics_line).objects;
    return lines.empty() ? nlohmann::json::object() : lines.back();
  } catch (const Error&) {
    return nlohmann::json::object();
  }
}

// Identifies the start of a Slurm job that holds the lock. It is the first line of the lock file:
// "<job> <restart>\n", or an empty line outside Slurm. The second line is a lock mark.
struct JobStart {
  std::string job;
  std::int64_t restart = 0;

  // Throws ConfigError if Slurm cannot have set the variables that it reads.
  static JobStart of_this_process() {
    const std::optional<SlurmJob> job = slurm_job([](const std::string& name) {
      const char* value = std::getenv(name.c_str());  // none is set
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    return job ? JobStart{std::to_string(job->id), job->restart_count} : JobStart();
  }
  std::string to_text() const { return job.empty() ? "\n" : fmt::format("{} {}\n", job, restart); }
  bool follows(const JobStart& other) const {
    return !job.empty() && job == other.job && restart > other.restart;
  }
};

// Returns no job if the first line is not in this form.
JobStart parse_job_start(const std::string& text) {
  const std::size_t space = text.find(' ');
  const std::size_t end = text.find('\n');
  std::int64_t restart = 0;
  if (space == std::string::npos || end == std::string::npos || space > end) {
    return {};
  }
  const char* const stop = text.data() + end;
  const auto read = std::from_chars(text.data() + space + 1, stop, restart);
  return read.ec == std::errc() && read.ptr == stop ? JobStart{text.substr(0, space), restart}
                                                    : JobStart();
}

// Returns false if another process holds the lock. On a file system without locks, it succeeds
// without one. Throws PolicyError if anybody who may write to the run's folder has put something
// else than a regular file there.
bool take_lock(UniqueHandle<FileDescriptorTraits>& lock, const fs::path& path) {
  lock.reset(open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW));
  return !lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Throws PolicyError if ranks that were not started by this launch use the run's folder. Those of a
// launch that was killed end within seconds.
void check_no_other_ranks(const fs::path& run) {
  constexpr std::chrono::seconds kOldRanksEnd{5};
  const auto end = std::chrono::steady_clock::now() + kOldRanksEnd;
  while (is_locked(run / ".lock")) {
    if (std::chrono::steady_clock::now() > end) {
      throw PolicyError(fmt::format(
          "another run is using {}{}. Wait for it, end its processes, or choose another run.dir",
          run.string(), lock_holder_text(run / ".lock")));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Returns the generation that wrote the manifest, which is recorded in its first lines.
std::optional<std::int64_t> generation_of(const fs::path& manifest) {
  constexpr std::string_view kField = "\"generation\": ";
  try {
    const File file = File::open_to_read(manifest);
    std::array<char, 4096> head{};
    const std::string_view text(
        head.data(), static_cast<std::size_t>(file.read_at(0, head.data(), std::ssize(head))));
    const std::size_t at = text.find(kField);
    std::int64_t generation = 0;
    if (at != std::string_view::npos &&
        std::from_chars(text.data() + at + kField.size(), text.data() + text.size(), generation)
                .ec == std::errc()) {
      return generation;
    }
  } catch (const Error&) {
    // No rank could resume from a manifest that is deleted or unreadable either.
  }
  return std::nullopt;
}

}  // namespace

void RunFiles::take() {
  make_directories(run_);
  const fs::path path = run_ / ".launch.lock";
  const JobStart own = JobStart::of_this_process();
  for (bool again = true; !take_lock(lock_, path); again = false) {
    // A file server keeps a dead host's lock for a while (NFS 4: its lease), or until the host is
    // back. If the lock is that of an earlier start of this Slurm job, it is stale, because Slurm
    // restarts a job only after its previous start has ended.
    if (!again || !own.follows(parse_job_start(contents_of(path)))) {
      throw PolicyError(fmt::format(
          "another trireme launch is using {}{}. Stop it first (SIGTERM saves a checkpoint), or "
          "choose another run.dir. If its host is dead and the file server still holds its lock, "
          "remove {}",
          run_.string(), lock_holder_text(path), path.string()));
    }
    (void)::unlink(path.c_str());
  }
  check_no_other_ranks(run_);
  const std::string text = own.to_text() + own_lock_mark();
  if (lock_ && ::ftruncate(lock_.get(), 0) == 0) {
    (void)!::pwrite(lock_.get(), text.data(), text.size(), 0);
  }
}

void RunFiles::begin_attempt() {
  done_before_ = contents_of(run_ / "DONE");
  std::error_code gone;
  fs::remove(run_ / "exit_reason.json", gone);
  reason_before_ = contents_of(run_ / "exit_reason.json");
  metrics_before_ = last_metrics(run_).dump();
}

std::optional<StatedReason> RunFiles::reason() const {
  const std::string now = contents_of(run_ / "exit_reason.json");
  return now == reason_before_ ? std::nullopt : parse_exit_reason(now);
}

std::int64_t RunFiles::logged_step() const {
  const nlohmann::json line = last_metrics(run_);
  const auto step = line.find("step");
  const bool is_new = line.dump() != metrics_before_;
  return is_new && step != line.end() && step->is_number_integer() ? step->get<std::int64_t>() : -1;
}

bool RunFiles::done(std::optional<int> code) const {
  const std::string now = contents_of(run_ / "DONE");
  return !now.empty() && (code == 0 || now != done_before_);
}

void RunFiles::end(const Finish& order, const std::string& host) const {
  const std::optional<StatedReason> stated = reason();
  if (order.code == 0 || (stated && stated->code == order.code)) {
    return;
  }
  // A rank reports no phase for the time after its last step.
  const std::string phase = order.phase == name_of(ProgressPhase::end)
                                ? std::string(name_of(ProgressPhase::train))
                                : order.phase;
  const nlohmann::json json = {{"code", order.code},
                               {"kind", "launch"},
                               {"message", order.why},
                               {"rank", stated ? stated->rank : 0},
                               {"host", host},
                               {"signal", order.code > 128 ? order.code - 128 : 0},
                               {"step", stated ? stated->step : order.step},
                               {"phase", stated ? stated->phase : phase},
                               {"time", std::time(nullptr)}};
  try {
    write_file_durably(run_ / "exit_reason.json",
                       json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } catch (const Error&) {
    // The message is on stderr at least.
  }
}

SavedStep RunFiles::durable_step() const {
  constexpr std::string_view kPrefix = "step-";
  SavedStep newest;
  try {
    for (const auto& entry : fs::directory_iterator(checkpoints_)) {
      const std::string name = entry.path().filename();
      std::int64_t step = -1;
      const char* const end = name.data() + name.size();
      if (name.starts_with(kPrefix) &&
          std::from_chars(name.data() + kPrefix.size(), end, step).ptr == end) {
        if (const auto generation = generation_of(entry.path() / "manifest.json")) {
          newest = std::max(newest, SavedStep{*generation, step});
        }
      }
    }
  } catch (const fs::filesystem_error&) {
    // There is no checkpoint folder yet, or the file system fails.
  }
  return newest;
}

}  // namespace trireme
