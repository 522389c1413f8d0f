// Overwrites a file in place with zeros and syncs it. On disks that store what is written somewhere
// else (SSDs, copy-on-write and journaling file systems, snapshots), the old bytes may remain.
#pragma once

#include <filesystem>

namespace trireme {

// Follows no link, and leaves what is no regular file or has other names alone, too. Throws IoError
// or PolicyError.
void overwrite(const std::filesystem::path& path);

}  // namespace trireme
