// A lock mark is a line in a locked file that says who holds the lock, so that a process which is
// refused can name the owner. It is for people: only the lock itself decides.
#pragma once

#include <filesystem>
#include <string>

namespace trireme {

// Returns "held by host n3, process 4711 (since 2026-01-31T12:00:00Z)\n" for this process.
std::string own_lock_mark();

// Returns ": host n3, process 4711 (since ...)" if the file has such a line, and otherwise "", as
// for files of older versions and files that cannot be read.
std::string lock_holder_text(const std::filesystem::path& locked_file);

}  // namespace trireme
