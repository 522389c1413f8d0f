// What this process may still take of its host's memory: MemAvailable of /proc/meminfo, or what the
// control groups (version 2 or 1) above the process leave, whichever is less. Page cache that a
// group could drop counts as free, as MemAvailable counts it. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme {

struct AvailableMemory {
  std::int64_t bytes = 0;
  std::string source;  // "MemAvailable", "control group /sys/fs/cgroup/job"
};

// root: where proc and sys are looked for. What can't be read limits nothing.
AvailableMemory available_memory(const std::filesystem::path& root = "/");

}  // namespace trireme
