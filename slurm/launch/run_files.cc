#include "slurm/launch/run_files.h"

#include <cerrno>
#include <charconv>
#include <ctime>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "src/base/error.h"

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

}  // namespace

void RunFiles::take() {
  make_directories(run_);
  const fs::path path = run_ / ".launch.lock";
  lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw PolicyError(fmt::format(
        "another trireme launch is at work on {}: end it first (SIGTERM saves), or choose another "
        "run.dir",
        run_.string()));
  }
}

void RunFiles::begin_attempt() {
  done_before_ = contents_of(run_ / "DONE");
  std::error_code gone;
  fs::remove(run_ / "exit_reason.json", gone);
}

std::optional<StatedReason> RunFiles::reason() const {
  return parse_exit_reason(contents_of(run_ / "exit_reason.json"));
}

bool RunFiles::done(std::optional<int> code) const {
  const std::string now = contents_of(run_ / "DONE");
  return !now.empty() && (code == 0 || now != done_before_);
}

void RunFiles::end(int code, const std::string& message, const std::string& host) const {
  const std::optional<StatedReason> stated = reason();
  if (code == 0 || (stated && stated->code == code)) {
    return;
  }
  const nlohmann::json json = {{"code", code},
                               {"kind", "launch"},
                               {"message", message},
                               {"rank", stated ? stated->rank : 0},
                               {"host", host},
                               {"signal", 0},
                               {"step", stated ? stated->step : 0},
                               {"phase", stated ? stated->phase : "start"},
                               {"time", std::time(nullptr)}};
  try {
    write_file_durably(run_ / "exit_reason.json",
                       json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } catch (const Error&) {
    // The message on stderr remains.
  }
}

std::int64_t RunFiles::durable_step() const {
  constexpr std::string_view kPrefix = "step-";
  std::int64_t newest = -1;
  try {
    for (const auto& entry : fs::directory_iterator(checkpoints_)) {
      const std::string name = entry.path().filename();
      std::int64_t step = -1;
      const char* const end = name.data() + name.size();
      if (name.starts_with(kPrefix) &&
          std::from_chars(name.data() + kPrefix.size(), end, step).ptr == end) {
        newest = std::max(newest, step);
      }
    }
  } catch (const fs::filesystem_error&) {
    // There is none yet, or the file system is not itself.
  }
  return newest;
}

}  // namespace trireme
