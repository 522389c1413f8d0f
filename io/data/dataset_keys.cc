#include "io/data/dataset_keys.h"

#include <optional>
#include <utility>

#include "io/data/pack_folder.h"
#include "io/data/shard_cipher.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/keys_file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

fs::path pack_keys_path(const fs::path& folder) {
  return folder / kNotesFolder / std::string(kKeysFileName);
}

// Returns the key in `wrapped`, which must vouch for these contents.
DataKey open_keys(const WrappedKeys& wrapped, std::string_view contents, const fs::path& file,
                  const KeyRing& ring) {
  DataKey key = ring.unwrap(wrapped, file.string());
  check_wrapped_keys(wrapped, key, contents, file.string());
  return key;
}

// Returns nothing if the folder holds no encrypted dataset, not even an unfinished one.
std::optional<DataKey> key_in(const fs::path& folder, const KeyRing& ring) {
  const fs::path manifest_path = folder / kDatasetManifestName;
  std::error_code code;
  if (fs::exists(manifest_path, code)) {
    const DatasetManifest manifest =
        parse_dataset_manifest(read_file(manifest_path), manifest_path.string());
    if (!manifest.is_encrypted()) {
      return std::nullopt;
    }
    return open_keys(read_dataset_keys(folder, manifest), manifest.seal,
                     folder / std::string(kKeysFileName), ring);
  }
  const fs::path path = pack_keys_path(folder);
  if (!fs::exists(path, code)) {
    return std::nullopt;
  }
  try {
    return open_keys(parse_wrapped_keys(read_file(path), path.string()), kPackContents, path, ring);
  } catch (const PolicyError& error) {
    throw PolicyError(
        fmt::format("{}\nThis pack was begun with other keys: name one of them as well, or remove "
                    "{} to begin anew",
                    error.what(), folder.string()));
  }
}

}  // namespace

WrappedKeys read_dataset_keys(const fs::path& folder, const DatasetManifest& manifest) {
  return read_keys_file({folder, manifest.data_key, manifest.seal, "dataset"});
}

void set_key(DatasetManifest& manifest, std::shared_ptr<const DataKey> key,
             const fs::path& folder) {
  const std::string name = (folder / kDatasetManifestName).string();
  if (key->id() != manifest.data_key) {
    throw DataError(fmt::format("{}: the key in {} is not that of the dataset", name,
                                std::string(kKeysFileName)));
  }
  for (ShardEntry& entry : manifest.shards) {
    try {
      entry.plain_xxh3 = open_plain_digest(*key, entry);
    } catch (const DataError& error) {
      throw data_error_in(name, error);
    }
  }
  manifest.key = std::move(key);
}

std::shared_ptr<const DataKey> data_key_of(const std::shared_ptr<const FolderKey>& key) {
  return key == nullptr ? nullptr : std::shared_ptr<const DataKey>(key, &key->key);
}

void unlock(DatasetManifest& manifest, const fs::path& folder, const KeyRing& ring) {
  if (manifest.is_encrypted()) {
    const WrappedKeys wrapped = read_dataset_keys(folder, manifest);
    DataKey key = open_keys(wrapped, manifest.seal, folder / std::string(kKeysFileName), ring);
    set_key(manifest, std::make_shared<const DataKey>(std::move(key)), folder);
  }
}

std::string dataset_key_text(const fs::path& folder, const KeyRing& ring) {
  const std::optional<DataKey> found = key_in(folder, ring);
  return to_text(found ? ring.wrap(*found, kPackContents)
                       : ring.wrap(DataKey::generate(), kPackContents));
}

DatasetKeyMaker dataset_key_maker(const KeyRing& ring) {
  return [&ring](const fs::path& folder) {
    const std::string origin = fmt::format("the key of {}", folder.string());
    const WrappedKeys wrapped = parse_wrapped_keys(dataset_key_text(folder, ring), origin);
    return std::make_shared<const FolderKey>(
        FolderKey{ring.unwrap(wrapped, origin), wrapped.recipients});
  };
}

void keep_key_text(const fs::path& folder, const FolderKey& key) {
  write_file_durably(pack_keys_path(folder), keys_text(key, kPackContents));
}

}  // namespace trireme
