// Finds the host memory that this process may still take: the lesser of MemAvailable in
// /proc/meminfo and what the control groups (version 2 or 1) above the process leave. Page cache
// that a group could drop counts as free, as it does in MemAvailable. Any thread may call it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme {

struct AvailableMemory {
  std::int64_t bytes = 0;
  std::string source;  // for example "MemAvailable" or "control group /sys/fs/cgroup/job"
};

// root: the folder that holds proc and sys. Files that cannot be read limit nothing.
AvailableMemory available_memory(const std::filesystem::path& root = "/");

}  // namespace trireme
