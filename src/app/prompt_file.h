// Files of prompts for `trireme generate`. Pure functions but for reading the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// The prompts of a file: one per line, blank lines left out; or, where the name ends in .jsonl, the
// field "prompt" of one JSON object per line. NotFound, IoError; DataError names file and line of
// what is not such an object, and a file without prompts.
std::vector<std::string> read_prompts(const std::filesystem::path& file);

}  // namespace trireme
