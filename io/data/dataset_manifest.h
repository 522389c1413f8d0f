// DatasetManifest lists the shards of a dataset. One rank writes it to the folder after all shards,
// and its presence makes the folder a dataset. To read a dataset, one rank reads the manifest and
// broadcasts it. A value with pure functions.
//
//   DIR/manifest.json                  sealed JSON (src/base/sealed_json.h)
//   DIR/shards/00000.h5 ...            HDF5, read-only once written
//
//   {"format": "trireme-dataset", "version": 1, "kind": "tokens",          2 if it is encrypted,
//                                                                          3 if it has a label,
//                                                                          4 if it has a loss mask
//    "dtype": "U16" | "U32", "vocab": 257,
//    "tokenizer": {"name": "bytes", "digest": SHA-256},
//    "n_tokens": sum, "n_docs": sum, "block_bytes": 1048576,
//    "digest": "sha256:..."            over tokenizer, dtype and the shards' digests, in order
//    "source": text, "fingerprint": SHA-256 of names, sizes, times of the inputs and the options,
//    "label": {"classification": "secret", ...},     src/policy/label.h, if it has one
//    "encryption": {"cipher": "AES-256-GCM", "data_key": "<32 digits>"},    if it is encrypted
//    "shards": [{"path": "shards/00000.h5", "bytes", "n_tokens", "n_docs",
//                "data_offset", "data_bytes"     where /tokens lies (H5Dget_offset)
//                "docs_offset", "docs_bytes"     where /doc_offsets lies
//                "mask_offset", "mask_bytes"     where /loss_mask lies, if there is one, and
//                "n_targets"                     how many tokens it marks
//                "xxh3": of the whole file, "blocks": 16 digits for each 1 MiB, joined,
//                "salt": 32 digits, "tags": 32 digits for each 1 MiB, joined,     if it is
//                "plain_xxh3": 48 digits, the encrypted digest of the plain file  encrypted}, ...]}
//
//   a shard:  | HDF5 superblock, headers, attributes | /doc_offsets u64 [n_docs + 1] |
//             | pad to 4 KiB or 1 MiB | /tokens u16|u32 [n_tokens] |
//             | /loss_mask u8 [n_tokens], if there is one | headers, if any |
//
// A loss mask says which tokens training is to predict: 1 for those, 0 for all others. Either all
// shards have one or none.
//
// An encrypted shard has the bytes of the plain file, encrypted in place (shard_cipher.h), and is
// named shards/00000.h5.sealed. Its digests are those of the encrypted bytes, so that it can be
// copied and verified without a key. `digest`, that of the plain data, is left out: whoever has the
// key computes it. keys.json beside the manifest has the wrapped data key.
//
// Unknown fields are ignored; a higher version is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/keys/block_cipher.h"
#include "src/policy/label.h"

namespace trireme {

inline constexpr std::int64_t kDatasetVersion = 1;
inline constexpr std::int64_t kEncryptedDatasetVersion = 2;
// With a label, encrypted or not, so that older programs refuse what they would use without it.
inline constexpr std::int64_t kLabelledDatasetVersion = 3;
// With a loss mask, whatever else it has, so that older programs do not train on all tokens.
inline constexpr std::int64_t kMaskedDatasetVersion = 4;
inline constexpr const char* kDatasetManifestName = "manifest.json";

struct ShardEntry {
  std::string path;  // relative to the dataset's folder
  std::int64_t bytes = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_docs = 0;
  std::int64_t data_offset = 0;
  std::int64_t data_bytes = 0;
  std::int64_t docs_offset = 0;
  std::int64_t docs_bytes = 0;
  std::int64_t mask_offset = 0;
  std::int64_t mask_bytes = 0;  // 0 without a loss mask
  std::int64_t n_targets = 0;   // tokens that the mask marks
  std::uint64_t xxh3 = 0;
  std::vector<std::uint64_t> blocks;

  // Only of encrypted shards:
  std::string salt = {};            // gives the file a key that no other contents had
  std::vector<BlockTag> tags = {};  // of each block
  std::string sealed_xxh3 = {};     // 24 bytes, the encrypted digest of the plain file
  // The digest itself; set by set_key(). Not part of the text.
  std::uint64_t plain_xxh3 = 0;

  bool has_mask() const { return mask_bytes > 0; }
  // Returns the digest of the plain file. Precondition: the manifest has its key, if it is
  // encrypted.
  std::uint64_t logical_xxh3() const { return tags.empty() ? xxh3 : plain_xxh3; }
};

struct DatasetManifest {
  int token_bytes = 2;  // 2 or 4
  std::int64_t vocab = 0;
  std::string tokenizer;
  std::string tokenizer_digest;
  std::string source;
  std::string fingerprint;
  std::optional<Label> label = {};
  std::vector<ShardEntry> shards;
  std::string data_key = {};  // identity of the key that encrypts the shards; empty if none does
  std::string seal = {};      // set by parse_dataset_manifest(), which found it intact

  // The key itself, for readers who have it (dataset_keys.h). Not part of the text.
  std::shared_ptr<const DataKey> key = {};

  bool is_encrypted() const { return !data_key.empty(); }
  // Returns whether the shards can be read, and digest() be called.
  bool is_open() const { return data_key.empty() || key != nullptr; }
  bool has_mask() const { return !shards.empty() && shards.front().has_mask(); }
  std::int64_t version() const {
    return has_mask()       ? kMaskedDatasetVersion
           : label          ? kLabelledDatasetVersion
           : is_encrypted() ? kEncryptedDatasetVersion
                            : kDatasetVersion;
  }
  std::int64_t n_tokens() const;
  std::int64_t n_docs() const;
  // Returns the number of tokens that count as targets: without a mask, all.
  std::int64_t n_targets() const;
  std::int64_t bytes() const;
  // Returns "sha256:...", which identifies the plain data, independently of the inputs it was
  // packed from and of encryption. Precondition: is_open().
  std::string digest() const;
};

std::string manifest_text(const DatasetManifest& manifest);
// Validates everything that hostile text could claim. Throws DataError that names `name`, the field
// and its value.
DatasetManifest parse_dataset_manifest(std::string_view text, const std::string& name);

// Returns the text of a folder's manifest. Throws NotFound if the folder does not exist, and
// DataError if it is not a dataset, with a hint if it holds foreign HDF5 files.
std::string read_manifest_text(const std::filesystem::path& folder);

// Returns whether the folder holds a dataset of ours, finished or not, valid or not.
bool is_dataset_folder(const std::filesystem::path& folder);

}  // namespace trireme
