// DatasetManifest lists the shards of a dataset. One rank writes it to the folder after all shards,
// and its presence makes the folder a dataset. To read a dataset, one rank reads the manifest and
// broadcasts it. A value with pure functions.
//
//   DIR/manifest.json                  sealed JSON (src/base/sealed_json.h)
//   DIR/shards/00000.h5 ...            HDF5, read-only once written
//
//   {"format": "trireme-dataset", "version": 1, "kind": "tokens",
//    "dtype": "U16" | "U32", "vocab": 257,
//    "tokenizer": {"name": "bytes", "digest": SHA-256},
//    "n_tokens": sum, "n_docs": sum, "block_bytes": 1048576,
//    "digest": "sha256:..."            over tokenizer, dtype and the shards' digests, in order
//    "source": text, "fingerprint": SHA-256 of names, sizes, times of the inputs and the options,
//    "shards": [{"path": "shards/00000.h5", "bytes", "n_tokens", "n_docs",
//                "data_offset", "data_bytes"     where /tokens lies (H5Dget_offset)
//                "docs_offset", "docs_bytes"     where /doc_offsets lies
//                "xxh3": of the whole file, "blocks": 16 digits for each 1 MiB, joined}, ...]}
//
//   a shard:  | HDF5 superblock, headers, attributes | /doc_offsets u64 [n_docs + 1] |
//             | pad to 4 KiB or 1 MiB | /tokens u16|u32 [n_tokens] | headers, if any |
//
// Unknown fields are ignored; a higher version is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

constexpr std::int64_t kDatasetVersion = 1;
constexpr const char* kDatasetManifestName = "manifest.json";

struct ShardEntry {
  std::string path;  // relative to the dataset's folder
  std::int64_t bytes = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_docs = 0;
  std::int64_t data_offset = 0;
  std::int64_t data_bytes = 0;
  std::int64_t docs_offset = 0;
  std::int64_t docs_bytes = 0;
  std::uint64_t xxh3 = 0;
  std::vector<std::uint64_t> blocks;
};

struct DatasetManifest {
  int token_bytes = 2;  // 2 or 4
  std::int64_t vocab = 0;
  std::string tokenizer;
  std::string tokenizer_digest;
  std::string source;
  std::string fingerprint;
  std::vector<ShardEntry> shards;

  std::int64_t n_tokens() const;
  std::int64_t n_docs() const;
  std::int64_t bytes() const;
  // Returns "sha256:...", which identifies the data independently of the inputs it was packed from.
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
