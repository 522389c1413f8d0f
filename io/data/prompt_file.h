// Reads files of prompts for `trireme generate`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Returns the prompts of a file: one per line without blank lines, or, if the name ends in .jsonl,
// the field "prompt" of one JSON object per line. Throws NotFound or IoError, and a DataError that
// names file and line for a malformed object or a file without prompts.
std::vector<std::string> read_prompts(const std::filesystem::path& file);

}  // namespace trireme
