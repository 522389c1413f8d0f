// Asks whether a lock is held, without taking it for longer than a moment.
#pragma once

#include <filesystem>

namespace trireme {

// Returns whether a process holds the lock (flock) of this file.
bool is_locked(const std::filesystem::path& path);

}  // namespace trireme
