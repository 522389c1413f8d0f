// FileLock: one process at a time at a job on a file system (flock). Held until it ends; a killed
// process lets go. Where the file system knows no locks, none is held.
#pragma once

#include <filesystem>
#include <optional>

#include "src/base/file.h"

namespace trireme {

class FileLock {
 public:
  // Waits for its turn.
  static FileLock wait_for(const std::filesystem::path& path);
  // Nothing when another process holds it.
  static std::optional<FileLock> try_take(const std::filesystem::path& path);

 private:
  explicit FileLock(int fd) : handle_(fd) {}

  UniqueHandle<FileDescriptorTraits> handle_;
};

}  // namespace trireme
