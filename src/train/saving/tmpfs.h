// Tells folders in memory from those on disks.
#pragma once

#include <filesystem>

namespace trireme {

// Returns whether the folder lies on a tmpfs.
bool is_tmpfs(const std::filesystem::path& folder);

}  // namespace trireme
