// Makes tar archives of small files in memory (POSIX.1-1988, "ustar"). Pure functions but the last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace trireme {

// Returns a file of an archive: a header of 512 bytes and the contents, padded to a multiple of 512
// bytes. Owner and group are 0 and have no names. name: a relative path of at most 100 bytes, or of
// 255 if it can be divided at a slash; throws ConfigError for longer ones. time: seconds since the
// epoch.
std::string tar_entry(const std::string& name, std::string_view contents, std::int64_t time);
// Returns the end of an archive.
std::string tar_end();

// Returns whether a new archive may take the place of this file: of another one, an empty file, or
// what is no regular file.
bool may_become_tar(const std::filesystem::path& file);

}  // namespace trireme
