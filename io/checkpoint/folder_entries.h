// Lists what a folder holds.
#pragma once

#include <filesystem>
#include <vector>

namespace trireme {

// Returns the paths of the folder's entries in any order, none if there is no such folder. Throws
// the error of the file system if it cannot be read.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);

}  // namespace trireme
