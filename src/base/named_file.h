// Checks a file that a person has named before a command computes for long.
#pragma once

#include <filesystem>
#include <string_view>

namespace trireme {

// Throws what write_named_file() would throw for such a name: for what is no regular file
// (PolicyError), for a missing folder (NotFound), for a folder in which this process may not write
// (PolicyError, or IoError if nobody may), and for a name that is too long (ConfigError). Also
// throws ConfigError for "-", which elsewhere means standard output. option: of the command line,
// for the message; may be empty.
void check_named_file(const std::filesystem::path& path, std::string_view option = "");

}  // namespace trireme
