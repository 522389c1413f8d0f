// The manifest of a dataset: what makes a folder one. Written last, by one rank; read by one rank
// and broadcast. A value; pure functions.
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
  // "sha256:...": the identity of the data, whatever it was packed from.
  std::string digest() const;
};

std::string manifest_text(const DatasetManifest& manifest);
// Everything a hostile text may claim is checked; DataError names `name`, the field and its value.
DatasetManifest parse_dataset_manifest(std::string_view text, const std::string& name);

// The text of a folder's manifest. NotFound where there is no folder; DataError where the folder is
// not a dataset, with a hint when it holds foreign HDF5.
std::string read_manifest_text(const std::filesystem::path& folder);

}  // namespace trireme
