// FilePlace is where a file really lies: its path without symbolic links, and the file system that
// holds it, by mount point.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct FilePlace {
  std::filesystem::path path;   // absolute, without symbolic links
  std::filesystem::path mount;  // mount point of the file system
};

// Looks at the path, or at its nearest parent that exists. Throws PolicyError if it cannot be
// resolved, such as for a loop of links or a folder that may not be searched.
FilePlace place_of(const std::filesystem::path& path);

// Returns the mount points in the text of /proc/self/mountinfo. Lines that are something else are
// left out.
std::vector<std::filesystem::path> parse_mounts(std::string_view mountinfo);
// Returns the longest mount point that holds the path, or "/".
std::filesystem::path mount_of(const std::filesystem::path& path,
                               const std::vector<std::filesystem::path>& mounts);

// Returns whether the path is the folder or lies below it. Both are absolute and normal.
bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace trireme
