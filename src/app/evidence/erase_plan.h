// What `trireme erase` erases: a checkpoint, a folder of checkpoints or a dataset, with everything
// in it. Private to that command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/evidence/certificate.h"

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
  // Files of wrapped keys that are missing beside manifests that say that shards are encrypted.
  std::vector<std::string> missing_keys;
  std::int64_t bytes = 0;  // of the files
};

// Throws NotFound if the folder does not exist, ConfigError if it is a symbolic link or nothing
// that Trireme has made, and PolicyError if a run writes to the checkpoints, a file has other
// names, or a link leads out of the folder. Changes nothing.
ErasePlan plan_erasure(const std::filesystem::path& folder);
// Returns what an interrupted erasure has left, perhaps nothing, not even the folder. Throws what
// plan_erasure() throws about links and runs, and PolicyError if the draft is about another folder.
ErasePlan plan_rest(const std::filesystem::path& folder, const Erasure& draft);

// Returns the digests of the planned files. Throws IoError if one cannot be read.
std::vector<Subject> digests_of(const ErasePlan& plan);
// Throws PolicyError if a file that is left was not listed in the draft, or has other contents,
// except for zeros where the erasure was to overwrite it. Changes nothing.
void refuse_unlisted(const ErasePlan& plan, const std::vector<Subject>& left, const Erasure& draft);

// Throws PolicyError if a run writes to the checkpoint folder.
void refuse_erasing_beside_run(const ErasePlan& plan);

// Overwrites the files of wrapped keys with zeros and syncs them, before anything is removed; then
// overwrites all other files, if asked to; then removes everything, manifests after all other files
// and the folder last. Follows no symbolic link. Throws IoError or PolicyError at the first
// failure; it can be repeated for what is left.
void erase(const ErasePlan& plan, bool overwrite_all);

}  // namespace trireme
