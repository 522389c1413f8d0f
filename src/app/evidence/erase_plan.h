// What `trireme erase` erases: a checkpoint, a folder of checkpoints or a dataset, with everything
// in it. Private to that command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme {

struct ErasePlan {
  std::filesystem::path folder;  // absolute
  std::string kind;              // "checkpoint", "checkpoints" or "dataset"
  // Paths relative to the folder, sorted: regular files, those of them with wrapped keys,
  // everything else that is no folder, and folders, which follow what is in them.
  std::vector<std::string> files;
  std::vector<std::string> keys;
  std::vector<std::string> others;
  std::vector<std::string> folders;
  std::int64_t bytes = 0;  // of the files
};

// Throws NotFound if the folder does not exist, ConfigError if it is a symbolic link or nothing
// that Trireme has made, and PolicyError if a run writes to the checkpoints or a file has other
// names. Changes nothing.
ErasePlan plan_erasure(const std::filesystem::path& folder);

// Throws PolicyError if a run writes to the checkpoint folder.
void refuse_erasing_beside_run(const ErasePlan& plan);

// Overwrites the files of wrapped keys with zeros and syncs them, before anything is removed; then
// overwrites all other files, if asked to; then removes everything, the folder included. Follows no
// symbolic link. Throws IoError or PolicyError at the first failure; it can be repeated for what is
// left.
void erase(const ErasePlan& plan, bool overwrite_all);

}  // namespace trireme
