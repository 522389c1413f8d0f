// Reads a list of paths, one per line, as `data pack --files-from` takes it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trireme {

// Returns the lines of a file, pipe or device that are not empty; "-" is standard input. Throws
// NotFound if the path is missing or a folder, IoError if reading fails, since a list that is cut
// short would silently leave out data, and DataError, with the line's number, if a line is longer
// than any path or holds a zero byte, as binary files do.
std::vector<std::string> read_path_list(const std::filesystem::path& from);

}  // namespace trireme
