// Prepares and cleans the folder of a dataset that is being packed, decides which run may write to
// it, and names its files. Only rank 0 changes the folder. Private to io/data.
#pragma once

#include <filesystem>
#include <string>

#include "io/data/dataset_writing.h"
#include "io/data/file_lock.h"

namespace trireme {

inline constexpr const char* kShardsFolder = "shards";
inline constexpr const char* kPackLockName = ".pack/lock";
inline constexpr const char* kNotesFolder =
    ".pack";  // exists while a pack or conversion is unfinished

inline constexpr const char* kSealedSuffix =
    ".sealed";  // of encrypted shards, which are no HDF5 files

// Returns "shards/00007.h5", or "shards/00007.h5.sealed", relative to the folder.
std::string shard_name(std::size_t index, bool is_encrypted);
std::filesystem::path note_path(const std::filesystem::path& folder, std::size_t index);
// Returns the fingerprint of everything the dataset is made from.
std::string fingerprint_of(const DatasetJob& job);

// Returns whether the folder already holds this very dataset. Throws PolicyError if it holds
// another one, or this one not encrypted as the job asks.
bool is_complete(const DatasetJob& job);
// Creates the folder and removes files that no shard of the job will replace. Throws PolicyError if
// the folder holds other files or another run is writing to it.
FileLock prepare_folder(const DatasetJob& job);
// Returns whether there is a finished shard, which the next run can keep.
bool has_notes(const std::filesystem::path& folder);
// Returns whether the folder of shards holds anything.
bool has_shards(const std::filesystem::path& folder);
void remove_notes(const std::filesystem::path& folder);
// Removes what prepare_folder() made, if nothing else has been added.
void abandon_folder(const std::filesystem::path& folder);

}  // namespace trireme
