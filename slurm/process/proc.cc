#include "slurm/process/proc.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trireme {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the ids of all processes but this one.
std::vector<pid_t> other_processes() {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid != ::getpid()) {
      found.push_back(pid);
    }
  }
  return found;
}

// Returns whether its real, effective, saved and file system user ids are this user's.
bool is_of_this_user(pid_t pid) {
  constexpr int kIds = 4;
  std::istringstream words(contents_of(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(words, line);) {
    if (line.starts_with("Uid:")) {
      std::istringstream ids(line.substr(std::strlen("Uid:")));
      int same = 0;
      for (uid_t id = 0; ids >> id && id == ::getuid();) {
        ++same;
      }
      return same == kIds;
    }
  }
  return false;
}

// Returns "<launch>.<attempt>" from the command line of a daemon of mpirun, where it follows `-mca
// trireme_launch`, or "" for any other process.
std::string mark_of_daemon(pid_t pid) {
  std::error_code gone;
  const std::string program =
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), gone).filename();
  if (program != "orted" && program != "prted") {
    return "";
  }
  std::istringstream words(contents_of(fmt::format("/proc/{}/cmdline", pid)));
  std::string option;
  std::string name;
  for (std::string word; std::getline(words, word, '\0');) {
    if (name == kLaunchMark && option.starts_with('-') && option.ends_with("mca")) {
      return word.starts_with('"') ? word.substr(1) : word;
    }
    option = std::exchange(name, word);
  }
  return "";
}

}  // namespace

std::optional<ProcessState> process_state(pid_t pid) {
  // The second field is the command, which may contain blanks and brackets.
  const std::string stat = contents_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(stat.substr(end + 1));
  std::string letter;
  std::string field;
  fields >> letter;
  constexpr int kStartTime = 22;  // number of the field in proc(5), where the letter is field 3
  for (int number = 4; number <= kStartTime; ++number) {
    fields >> field;
  }
  ProcessState state;
  const auto [stop, error] =
      std::from_chars(field.data(), field.data() + field.size(), state.start_ticks);
  if (letter.empty() || letter == "Z" || letter == "X" || error != std::errc()) {
    return std::nullopt;
  }
  state.letter = letter.front();
  return state;
}

std::optional<std::string> variable_of(pid_t pid, const std::string& name) {
  const std::string all = contents_of(fmt::format("/proc/{}/environ", pid));
  const std::string wanted = name + "=";
  std::size_t at = 0;
  while (at < all.size()) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    if (all.compare(at, wanted.size(), wanted) == 0) {
      return all.substr(at + wanted.size(), end - at - wanted.size());
    }
    at = end + 1;
  }
  return std::nullopt;
}

bool OwnProcess::signal(int number) const {
  if (descriptor_) {
    return ::syscall(SYS_pidfd_send_signal, descriptor_.get(), number, nullptr, 0) == 0;
  }
  return ::kill(pid_, number) == 0;
}

std::optional<OwnProcess> OwnProcess::open(pid_t pid) {
  // glibc 2.36 declares pidfd_open for C only.
  OwnProcess process(pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // Errors other than ESRCH say nothing about the process; the kernel may be old, for example.
  const bool is_gone = !process.descriptor_ && errno == ESRCH;
  if (is_gone || !is_of_this_user(pid) || !process_state(pid) || !process.exists()) {
    return std::nullopt;
  }
  return process;
}

void OwnProcess::kill() const { (void)signal(SIGKILL); }

std::vector<OwnProcess> processes_of_launch(const std::string& launch, const std::string& node) {
  std::vector<OwnProcess> found;
  for (const pid_t pid : other_processes()) {
    auto process = OwnProcess::open(pid);
    if (process && variable_of(pid, "TRIREME_LAUNCH_ID") == launch &&
        (node.empty() || variable_of(pid, "TRIREME_NODE") == node) && process->exists()) {
      found.push_back(std::move(*process));
    }
  }
  return found;
}

std::vector<MarkedProcess> marked_processes(const std::string& launch) {
  std::vector<MarkedProcess> found;
  for (const pid_t pid : other_processes()) {
    auto process = OwnProcess::open(pid);
    if (!process) {
      continue;
    }
    const std::string variable = fmt::format("OMPI_MCA_{}", kLaunchMark);
    const std::string mark = variable_of(pid, variable).value_or(mark_of_daemon(pid));
    std::int64_t attempt = -1;
    if (mark.starts_with(launch + ".") &&
        std::from_chars(&mark[launch.size() + 1], mark.data() + mark.size(), attempt).ec ==
            std::errc() &&
        process->exists()) {
      found.push_back({std::move(*process), attempt});
    }
  }
  return found;
}

std::int64_t out_of_memory_kills() {
  std::istringstream lines(contents_of("/proc/vmstat"));
  std::string name;
  std::int64_t count = 0;
  while (lines >> name >> count) {
    if (name == "oom_kill") {
      return count;
    }
  }
  return 0;
}

}  // namespace trireme
