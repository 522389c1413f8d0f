#include "mpi/links/nccl_log_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

namespace trireme {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns whether NCCL logs at most warnings with this value of NCCL_DEBUG.
bool is_quiet(const std::string& level) {
  for (const char* const quiet : {"", "VERSION", "WARN"}) {
    if (::strcasecmp(level.c_str(), quiet) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

NcclLogFile& NcclLogFile::of_process() {
  static NcclLogFile file;
  return file;
}

NcclLogFile::NcclLogFile() {
  const std::string target = variable("NCCL_DEBUG_FILE");
  if (const std::string level = variable("NCCL_DEBUG"); !is_quiet(level) || !target.empty()) {
    trouble_ = fmt::format(
        "how NCCL connects the ranks is not known, because {}={} directs its log elsewhere; unset "
        "it to see the connections in this log",
        target.empty() ? "NCCL_DEBUG" : "NCCL_DEBUG_FILE", target.empty() ? level : target);
    return;
  }
  direct_log();
}

// The path names this process, so that a child process with the same environment does not mistake
// one of its own files for the log.
void NcclLogFile::direct_log() {
  file_ = ::memfd_create("nccl-log", MFD_CLOEXEC);
  const std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), file_);
  const int again = file_ < 0 ? -1 : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (again < 0) {
    trouble_ = fmt::format(
        "how NCCL connects the ranks is not known, because its log cannot be kept in memory ({})",
        std::strerror(errno));
    return;
  }
  ::close(again);
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH", 1);
  ::setenv("NCCL_DEBUG_FILE", path.c_str(), 1);
}

NcclLogFile::~NcclLogFile() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

std::string NcclLogFile::new_text() {
  std::string text;
  while (file_ >= 0 && text.size() < kMostBytes) {
    const std::size_t before = text.size();
    text.resize(before + kPieceBytes);
    const ssize_t got = ::pread(file_, text.data() + before, kPieceBytes, at_);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got <= 0) {
      break;
    }
    at_ += got;
  }
  return text;
}

NcclConnections NcclLogFile::read() {
  const std::lock_guard lock(mutex_);
  const std::string text = new_text();
  if (!text.empty()) {  // free the memory of what was read
    (void)::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, at_);
  }
  return parser_.parse(text);
}

}  // namespace trireme
