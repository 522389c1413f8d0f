// Dataset: a packed dataset, opened to be read. The manifest is read by one rank and handed to the
// others as text; shards are opened when first touched, read by pread at the manifest's offsets,
// and never through libhdf5. Any number of threads may read at once, each with its own scratch
// buffer.
//
// Nothing is believed: the first touch of a block of 1 MiB reads it whole and compares its digest;
// a shard is opened only if it has the manifest's size and its first block, HDF5's headers, is
// whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "io/data/dataset_manifest.h"
#include "io/data/sample_index.h"

namespace trireme {

class Dataset {
 public:
  // Reads the manifest and compares the size of every shard with it: what rank 0 does.
  static Dataset open(const std::filesystem::path& folder);
  // From a manifest's text, as rank 0 broadcast it. Touches no file.
  Dataset(const std::filesystem::path& folder, std::string_view manifest_text);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  const DatasetManifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Whole samples of `sequence` + 1 tokens; at least one, or DataError.
  std::int64_t samples(std::int64_t sequence) const;
  // DataError for the first shard that is missing or has another size.
  void check_sizes() const;

  // The stored tokens of a run, u16 or u32 [run.count], in `scratch`; valid until scratch changes.
  const std::byte* read(const TokenRun& run, std::vector<std::byte>& scratch) const;
  // The tokens of a run. to: i32 [run.count]. DataError for one outside the vocabulary.
  void read(const TokenRun& run, std::span<std::int32_t> to, std::vector<std::byte>& scratch) const;
  // Hints that a run will be read soon, where it was not touched yet.
  void will_need(const TokenRun& run) const;
  // DataError for the first token of a run that lies outside the vocabulary, naming file and byte.
  // raw: u16 or u32 [run.count].
  void check_vocabulary(const TokenRun& run, const std::byte* raw) const;

 private:
  class Shard;
  std::filesystem::path folder_;
  DatasetManifest manifest_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace trireme
