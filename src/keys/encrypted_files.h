// Finds the files of a run that are encrypted, or should be. Private to this folder.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace trireme {

// Return the logs, metrics, events and traces of a run that are encrypted, or that are plain;
// sorted, so that rank-00000.1.jsonl precedes rank-00000.jsonl.
std::vector<std::filesystem::path> encrypted_files(const std::filesystem::path& run);
std::vector<std::filesystem::path> plain_files(const std::filesystem::path& run);
// Returns the symbolic links, folders and devices that have the name of such a file.
std::vector<std::filesystem::path> misplaced_entries(const std::filesystem::path& run);

// Returns whether it can be the path of such a file in its run's folder: it has no other characters
// than letters, digits, and those of "-_./".
bool is_file_name(std::string_view name);

}  // namespace trireme
