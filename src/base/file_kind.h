// Says what a path is, for messages about what lies where a regular file is expected.
#pragma once

#include <filesystem>
#include <string>

namespace trireme {

// Returns what is there instead of a regular file, such as "a symbolic link"; "" if it is one, or
// if there is nothing. Follows no link.
std::string other_than_file(const std::filesystem::path& path);

}  // namespace trireme
