#include "src/device/sim/nccl_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <strings.h>
#include <unistd.h>

namespace sim {
namespace {

std::string variable_or(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Returns the path with %h and %p replaced by the host's name and the process's id.
std::string expanded(const std::string& path, const std::string& host) {
  std::string result;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'h' || next == 'p' || next == '%') {
      result += next == 'h' ? host : next == 'p' ? std::to_string(::getpid()) : "%";
      ++i;
    } else {
      result += path[i];
    }
  }
  return result;
}

// The variables are read at the first message, as NCCL does.
struct LogSettings {
  std::mutex mutex;
  std::FILE* file = nullptr;  // null: nothing is logged
  std::string host;
  std::array<bool, 2> has = {true, false};  // by subsystem

  LogSettings() {
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    host = name.data();
    const std::string level = variable_or("NCCL_DEBUG", "");
    if (::strcasecmp(level.c_str(), "INFO") != 0 && ::strcasecmp(level.c_str(), "TRACE") != 0) {
      return;
    }
    const std::string subsystems = variable_or("NCCL_DEBUG_SUBSYS", "INIT") + ",";
    has = {subsystems.find("INIT,") != std::string::npos,
           subsystems.find("GRAPH,") != std::string::npos};
    const std::string path = expanded(variable_or("NCCL_DEBUG_FILE", ""), host);
    file = path.empty() ? nullptr : std::fopen(path.c_str(), "w");
    file = file == nullptr ? stdout : file;
  }
};

LogSettings& settings() {
  static auto* const made = new LogSettings;
  return *made;
}

}  // namespace

void log_nccl(int device, NcclSubsystem subsystem, const std::string& message) {
  LogSettings& log = settings();
  const std::lock_guard lock(log.mutex);
  if (log.file != nullptr && log.has[static_cast<std::size_t>(subsystem)]) {
    std::fprintf(log.file, "%s:%d:%d [%d] NCCL INFO %s\n", log.host.c_str(), ::getpid(), ::gettid(),
                 device, message.c_str());
    (void)std::fflush(log.file);
  }
}

}  // namespace sim
