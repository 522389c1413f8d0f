// Computes the SHA-256 of whole files, several at once, at the speed of the disk where there are
// enough files and cores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/error.h"

namespace trireme {

struct FileDigest {
  std::string sha256;            // 64 digits; empty if the file could not be read
  std::string trouble;           // why not
  ExitCode code = ExitCode::ok;  // of the error, if so
  std::int64_t bytes = 0;        // that were read
};

// Follows symbolic links.
FileDigest digest_file(const std::filesystem::path& path);
// Returns the digests in the order of the paths. Uses up to `threads` threads, the largest file
// first.
std::vector<FileDigest> digest_files(const std::vector<std::filesystem::path>& paths, int threads);

}  // namespace trireme
