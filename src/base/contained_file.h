// Reads files of a folder that somebody else may have written. A symbolic link in it may lead to a
// file that only the caller of the program may read, whose contents must not go into what a command
// copies or shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "src/base/file.h"

namespace trireme {

// Returns where an open file lies if that is not below the folder. The kernel says what was opened,
// which is what will be read even if somebody exchanges a link now.
std::optional<std::filesystem::path> place_outside(const File& file,
                                                   const std::filesystem::path& folder);

// Returns the contents of an open file, as read_file() does.
std::string read_open_file(const File& file, std::int64_t max_bytes);
// Does what read_file() does, but throws DataError if a symbolic link leads out of the folder.
std::string read_contained_file(const std::filesystem::path& path,
                                const std::filesystem::path& folder,
                                std::int64_t max_bytes = 1 << 30);

}  // namespace trireme
