// Reads the end of files that hold one JSON object per line and grow with a run: metrics, journals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/run_text.h"

namespace trireme {

// Returns the objects in the whole lines among the last `most_bytes` of a file, and none if it is
// no regular file. Ignores lines that are no objects, such as one that is just being written.
// Throws IoError if reading fails.
std::vector<nlohmann::json> last_json_lines(const std::filesystem::path& path,
                                            std::int64_t most_bytes = 256 << 10);
// Does the same with a file that may be encrypted, which is read as a whole. Also throws what
// TextReader::read() throws.
std::vector<nlohmann::json> last_json_lines(const std::filesystem::path& path,
                                            const TextReader& reader,
                                            std::int64_t most_bytes = 256 << 10);

}  // namespace trireme
