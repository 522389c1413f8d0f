// The folder of a dataset while it is being packed: who may write there, what is left over, and the
// names in it. Rank 0's business; private to io/data.
#pragma once

#include <filesystem>
#include <string>

#include "io/data/dataset_writing.h"
#include "io/data/file_lock.h"

namespace trireme {

constexpr const char* kShardsFolder = "shards";
constexpr const char* kNotesFolder = ".pack";  // there while a pack or conversion is unfinished

// "shards/00007.h5", below the folder.
std::string shard_name(std::size_t index);
std::filesystem::path note_path(const std::filesystem::path& folder, std::size_t index);
// Of all that the dataset is made from.
std::string fingerprint_of(const DatasetJob& job);

// Whether the folder already holds this very dataset. PolicyError when it holds another one.
bool is_complete(const DatasetJob& job);
// Makes the folder ready and removes what no shard of the job will replace. PolicyError when
// somebody else's files or another run are in it.
FileLock prepare_folder(const DatasetJob& job);
// Whether a shard is finished, which the next run can keep.
bool has_notes(const std::filesystem::path& folder);
void remove_notes(const std::filesystem::path& folder);
// Removes what prepare_folder made, where nothing else came into it.
void abandon_folder(const std::filesystem::path& folder);

}  // namespace trireme
