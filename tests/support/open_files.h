// Waits for what another thread does to a file, by the descriptors that /proc/self/fd lists.
#pragma once

#include <filesystem>
#include <thread>

namespace trireme {

// Returns how many descriptors of this process refer to the file.
inline int descriptors_of(const std::filesystem::path& file) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    count += std::filesystem::read_symlink(entry.path(), closed) == file ? 1 : 0;
  }
  return count;
}

// Returns once `count` descriptors or more refer to the file, which the caller's test guarantees.
inline void wait_for_descriptors(const std::filesystem::path& file, int count) {
  while (descriptors_of(file) < count) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace trireme
