#include "slurm/process/proc.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/core.h>
#include <unistd.h>

namespace trireme {
using namespace std::string_literals;
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// All but this one.
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

}  // namespace

std::optional<ProcessState> process_state(pid_t pid) {
  // The command, in the second field, may hold blanks and brackets.
  const std::string stat = contents_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(stat.substr(end + 1));
  std::string letter;
  std::string field;
  fields >> letter;
  constexpr int kStartTime = 22;  // of proc(5)'s fields; the letter is the third
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

std::vector<pid_t> processes_of_launch(const std::string& launch, const std::string& node) {
  std::vector<pid_t> found;
  for (const pid_t pid : other_processes()) {
    if (variable_of(pid, "TRIREME_LAUNCH_ID") == launch &&
        (node.empty() || variable_of(pid, "TRIREME_NODE") == node) && process_state(pid)) {
      found.push_back(pid);
    }
  }
  return found;
}

std::vector<MarkedProcess> marked_processes(const std::string& launch) {
  std::vector<MarkedProcess> found;
  for (const pid_t pid : other_processes()) {
    std::string mark = variable_of(pid, std::string("OMPI_MCA_") + kLaunchMark).value_or("");
    if (mark.empty()) {
      // Whole, or one word of a line for a shell; with quotes, or without.
      const std::string words = contents_of(fmt::format("/proc/{}/cmdline", pid));
      const std::size_t at = words.find(kLaunchMark);
      const std::size_t begin =
          at == std::string::npos
              ? at
              : words.find_first_not_of(" \"'\\=\0"s, at + std::strlen(kLaunchMark));
      mark = begin == std::string::npos ? "" : words.substr(begin, launch.size() + 20);
    }
    std::int64_t generation = -1;
    if (mark.starts_with(launch + ".") &&
        std::from_chars(&mark[launch.size() + 1], mark.data() + mark.size(), generation).ec ==
            std::errc()) {
      found.push_back({pid, generation});
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
