// Reads files that decide what users may do. Only root may be able to change them: the file and
// every folder above it belong to root, and neither groups nor others can write to them. No part of
// the path is a symbolic link, so that what was checked is what is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trireme {

// Returns the contents, or nothing if there is no such file or a folder of its path is missing.
// Throws PolicyError for everything else that is not such a file, and IoError.
std::optional<std::string> read_root_file(const std::filesystem::path& path,
                                          std::int64_t most_bytes);

}  // namespace trireme
