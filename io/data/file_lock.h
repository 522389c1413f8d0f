// FileLock makes processes on one file system do a job one at a time (flock). The lock is held
// until the object is destroyed or the process dies. On a file system without locks it has no
// effect.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

class FileLock {
 public:
  // Waits until no other process holds the lock.
  static FileLock wait_for(const std::filesystem::path& path);
  // Returns nothing if another process holds the lock.
  static std::optional<FileLock> try_take(const std::filesystem::path& path);
  // Replaces the contents of the locked file, as far as the disk permits.
  void write(std::string_view text) const;

 private:
  explicit FileLock(int fd) : handle_(fd) {}

  UniqueHandle<FileDescriptorTraits> handle_;
};

}  // namespace trireme
