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
  std::string tokens = "/tokens";  // one-dimensional, integers
  // Where documents end (document_ends.h). Empty: /doc_offsets, and a file without it is one
  // document.
  std::string offsets;
  std::int64_t vocab = 0;
  std::string tokenizer = "foreign";
  std::string source;
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::int64_t alignment_bytes = 4096;
  PackProgress progress;
};

// DataError for a file without such tokens, one that does not hold all that it promises (see
// H5Integers), offsets that do not fit the tokens, and a token outside the vocabulary.
PackReport convert(const ConvertOptions& options, const RankGroup& ranks);

}  // namespace trireme
