// Checks a file that a person has named before a command computes for long.
#pragma once

#include <filesystem>

namespace trireme {

// Throws what write_named_file() would throw for such a name: for what is no regular file
// (PolicyError), for a missing folder (NotFound), and for a name that is too long (ConfigError).
void check_named_file(const std::filesystem::path& path);

}  // namespace trireme
