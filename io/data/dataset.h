// Dataset is a packed dataset, open for reading. One rank reads the manifest and broadcasts its
// text. A shard is opened when it is first read, and read by pread at the offsets that the manifest
// lists, never through libhdf5. Any number of threads may read at once, each with its own scratch
// buffer.
//
// Data is verified before it is used: the first read of a digest block (1 MiB) reads the whole
// block and compares its digest. A shard is opened only if it has the size that the manifest lists
// and its first block, which holds HDF5's headers, is intact.
//
// A dataset that is encrypted is decrypted and authenticated block by block (encrypted_shard.h), if
// its key is given. Without the key, its tokens can't be read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/block_cache.h"
#include "io/data/dataset_manifest.h"
#include "io/data/sample_index.h"

namespace trireme {

class DatasetShard;
class DocumentIndex;
class KeyRing;

class Dataset {
 public:
  // Reads the manifest, and checks every shard as check_sizes() does. Only rank 0 calls it.
  static Dataset open(const std::filesystem::path& folder);
  // Does the same, and opens the dataset with a key of the ring if it is encrypted. Throws what
  // unlock() throws (dataset_keys.h).
  static Dataset open(const std::filesystem::path& folder, const KeyRing& ring);
  // Constructs from the manifest's text, as rank 0 broadcast it. Touches no file.
  Dataset(const std::filesystem::path& folder, std::string_view manifest_text);
  // manifest: its key opens the shards. manifest_text: from which it was parsed.
  Dataset(const std::filesystem::path& folder, std::string_view manifest_text,
          DatasetManifest manifest);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  const DatasetManifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Returns the SHA-256 of the text from which the manifest was parsed.
  const std::string& manifest_sha256() const { return manifest_sha256_; }
  // Returns the number of samples, of `sequence` + 1 tokens each. Throws DataError if there is
  // none.
  std::int64_t samples(std::int64_t sequence) const;
  // Throws DataError for the first shard that is missing or has another size, and PolicyError for
  // one that this user may not read.
  void check_sizes() const;

  // Reads the stored tokens of a token run, u16 or u32 [run.count], into `scratch`. The returned
  // pointer is valid until `scratch` changes.
  const std::byte* read(const TokenRun& run, std::vector<std::byte>& scratch) const;
  // Reads the tokens of a token run. to: i32 [run.count]. Throws DataError for a token outside the
  // vocabulary.
  void read(const TokenRun& run, std::span<std::int32_t> to, std::vector<std::byte>& scratch) const;
  // Reads the loss mask of a token run, u8 [run.count]: not 0 for tokens that count as targets.
  // Precondition: manifest().has_mask(). The pointer is valid until `scratch` changes.
  const std::byte* read_mask(const TokenRun& run, std::vector<std::byte>& scratch) const;
  // Returns where the documents of a shard end, in tokens: 0, then the end of each. Throws
  // DataError unless they ascend to the number of its tokens.
  std::vector<std::int64_t> document_offsets(std::size_t shard) const;
  // Sets `ends` to those of document_offsets() that are in (run.first, run.first + run.count],
  // each once. Throws as document_offsets().
  void document_ends(const TokenRun& run, std::vector<std::int64_t>& ends,
                     std::vector<std::byte>& scratch) const;
  // Asks the operating system to read a token run ahead, unless its blocks have been verified
  // already.
  void will_need(const TokenRun& run) const;
  // Throws DataError that names the file and byte of the run's first token outside the vocabulary,
  // if there is one. raw: u16 or u32 [run.count].
  void check_vocabulary(const TokenRun& run, const std::byte* raw) const;

 private:
  std::filesystem::path folder_;
  DatasetManifest manifest_;
  std::string manifest_sha256_;
  std::unique_ptr<BlockCache> cache_;  // of decrypted blocks; null if it is not encrypted
  std::vector<std::unique_ptr<DatasetShard>> shards_;
  std::vector<std::unique_ptr<DocumentIndex>> documents_;  // by shard
};

}  // namespace trireme
