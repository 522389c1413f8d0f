// Converts token datasets of other programs (HDF5 with any layout, filters and integer type) into
// datasets of ours, through libhdf5: slow, done once. Called by all ranks together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/data/dataset_writing.h"

namespace trireme {

struct ConvertOptions {
  std::vector<std::string> inputs;  // HDF5 files, and folders of them
  std::filesystem::path out;
  std::string tokens = "/tokens";        // one-dimensional, integers
  std::string offsets = "/doc_offsets";  // where documents start; may be absent
  std::int64_t vocab = 0;
  std::string tokenizer = "foreign";
  std::string source;
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::int64_t alignment_bytes = 4096;
  PackProgress progress;
};

// DataError for a file without such tokens, and for a token outside the vocabulary.
PackReport convert(const ConvertOptions& options, const RankGroup& ranks);

}  // namespace trireme
