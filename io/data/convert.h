// Converts other programs' token datasets, in HDF5 files of any layout, filters and integer type,
// into Trireme's format. It reads through libhdf5, which is slow but needed only once. All ranks
// call convert() together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/data/dataset_writing.h"

namespace trireme {

struct ConvertOptions {
  std::vector<std::string> inputs;  // HDF5 files and folders that contain them
  std::filesystem::path out;
  std::string tokens = "/tokens";  // name of a one-dimensional dataset of integers
  // Name of the dataset that says where documents end (document_ends.h). If empty, /doc_offsets is
  // used where it exists, and a file without it is one document.
  std::string offsets;
  std::int64_t vocab = 0;
  std::string tokenizer = "foreign";
  std::string source;
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::optional<Label> label = {};
  std::int64_t alignment_bytes = 4096;
  PackProgress progress;
  DatasetKeyMaker make_key = {};  // empty: the shards are not encrypted
};

// Throws DataError if a file lacks the token dataset or does not hold all the values it claims (see
// H5Integers), if offsets do not fit the tokens, or if a token lies outside the vocabulary.
PackReport convert(const ConvertOptions& options, const RankGroup& ranks);

}  // namespace trireme
