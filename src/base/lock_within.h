// Waits for the lock of a file, but not forever.
#pragma once

#include <chrono>
#include <filesystem>

namespace trireme {

// Takes the exclusive lock (flock) of an open file for which other processes have to hold it for
// milliseconds only: one that was stopped meanwhile must not stop this one, too. Returns 0, or the
// errno of a file system without locks. Throws IoError, which names the path, if another process
// still has the lock after this time.
int lock_within(int fd, std::chrono::seconds longest_wait, const std::filesystem::path& path);

}  // namespace trireme
