// Opens encrypted datasets, and makes the keys of those that are written. A dataset has a data key
// of its own, wrapped in keys.json beside its manifest (src/keys/wrapped_keys.h). A pack that is
// not finished keeps it in DIR/.pack/keys.json, because a later one may keep shards that were
// encrypted with it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "io/data/dataset_manifest.h"
#include "src/keys/folder_key.h"
#include "src/keys/key_ring.h"

namespace trireme {

// What unfinished packs wrap a key for, in the place of a manifest's seal.
inline constexpr const char* kPackContents = "pack";

// Reads keys.json of an encrypted dataset, and checks what can be checked without a key. Throws
// what read_keys_file() throws.
WrappedKeys read_dataset_keys(const std::filesystem::path& folder, const DatasetManifest& manifest);

// Gives the manifest its key, which makes it open, after checking that every shard's entry was made
// with it. Throws DataError that names `folder` if one was not.
void set_key(DatasetManifest& manifest, std::shared_ptr<const DataKey> key,
             const std::filesystem::path& folder);
// Returns the data key in a folder's key, which shares its owner; null if there is none.
std::shared_ptr<const DataKey> data_key_of(const std::shared_ptr<const FolderKey>& key);

// For one process: reads keys.json and opens the manifest, if it is encrypted. Throws PolicyError
// if no key of the ring opens it, and DataError if manifest or keys were changed without the key.
void unlock(DatasetManifest& manifest, const std::filesystem::path& folder, const KeyRing& ring);

// Returns the key of the dataset that is or will be in a folder. All ranks call it together, and
// get the same.
using DatasetKeyMaker =
    std::function<std::shared_ptr<const FolderKey>(const std::filesystem::path& folder)>;

// Returns such a function for one process. The ring must outlive it.
DatasetKeyMaker dataset_key_maker(const KeyRing& ring);

// Returns the text of the wrapped key, with kPackContents as contents, for a dataset in `folder`:
// that of the finished dataset, or of the unfinished one, or else a new one. Wraps it for all keys
// of the ring. One rank calls it, before it writes anything else there. Throws PolicyError if the
// ring does not open the key that is there.
std::string dataset_key_text(const std::filesystem::path& folder, const KeyRing& ring);
// Writes the text to DIR/.pack/keys.json, before the first shard is encrypted.
void keep_key_text(const std::filesystem::path& folder, const FolderKey& key);

}  // namespace trireme
