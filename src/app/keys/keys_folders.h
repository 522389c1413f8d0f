// Finds the folders and files that hold wrapped keys, and locks them. Private to `trireme keys`.
#pragma once

#include <filesystem>
#include <vector>

#include "io/data/file_lock.h"
#include "src/base/file.h"

namespace trireme {

// Returns whether it is log-keys/KEY in the folder of a run.
bool is_log_key_folder(const std::filesystem::path& folder);
// Returns the folder itself if it is a checkpoint or a dataset, or has the key of logs, else its
// folders, hidden ones included.
std::vector<std::filesystem::path> folders_with_keys(const std::filesystem::path& folder);
// Returns whether `place`, in a folder of checkpoints or datasets, is one of them that is in use,
// or has the key of logs.
bool is_in_use(const std::filesystem::path& place);
// Returns the symbolic links in a folder of several that lead to a folder elsewhere, sorted.
// Readers follow them. Links to folders in `folder` are left out.
std::vector<std::filesystem::path> linked_folders(const std::filesystem::path& folder);
// Throws PolicyError, which says how to go on, if a link in the folder leads to wrapped keys: a
// change here would leave them as they are in the target.
void refuse_linked_keys(const std::filesystem::path& folder);
// Returns what is named like a file with wrapped keys in the folder of a checkpoint or dataset,
// keys.json first. An unfinished pack keeps its key in a folder of its own. Follows a link that is
// the folder itself.
std::vector<std::filesystem::path> keys_files(const std::filesystem::path& folder);
// Overwrites and removes such a file; removes links and what is no regular file. Throws IoError for
// a folder.
void erase_keys_file(const std::filesystem::path& path);

// Returns the folder whose access the policy decides for changes in `folder`: the run of a folder
// log-keys, otherwise the folder itself.
std::filesystem::path access_folder(const std::filesystem::path& folder);

// Keeps other `trireme keys` and `trireme data` commands away from a folder, as far as its file
// system has locks. Throws PolicyError if one is at work there, or if a run may be writing
// checkpoints or, where the folder holds the keys of logs, logs.
class KeysLock {
 public:
  explicit KeysLock(const std::filesystem::path& folder);

 private:
  UniqueHandle<FileDescriptorTraits> directory_;
  std::vector<FileLock> datasets_;
};

}  // namespace trireme
