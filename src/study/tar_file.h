// Makes tar archives of small files in memory (POSIX.1-1988, "ustar"). Pure functions.
#pragma once

#include <cstdint>
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

}  // namespace trireme
