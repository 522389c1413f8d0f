// Converts other programs' token datasets into Trireme's format: HDF5 files of any layout, filters
// and integer type, indexed datasets of Megatron-LM, and arrays of NumPy (foreign_file.h). HDF5 is
// read through libhdf5, which is slow but needed only once. All ranks call convert() together.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/dataset_writing.h"

namespace trireme {

struct ConvertOptions {
  std::vector<std::string> inputs;  // files, prefixes of Megatron-LM, and folders of files
  std::filesystem::path out;
  std::string tokens = "/tokens";  // name of a one-dimensional HDF5 dataset of integers
  // Name of the HDF5 dataset that says where documents end (document_ends.h). If empty,
  // /doc_offsets is used where it exists, and a file without it is one document.
  std::string offsets;
  std::int64_t vocab = 0;
  std::string tokenizer = "foreign";
  std::string source;
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::optional<Label> label = {};                // joined with those beside the files
  std::vector<std::string> classifications = {};  // from the lowest
  // Called on all ranks with the joined label before anything is written. May throw, or be empty.
  std::function<void(const std::optional<Label>&)> admit = {};
  std::int64_t alignment_bytes = 4096;
  PackProgress progress;
  DatasetKeyMaker make_key = {};  // empty: the shards are not encrypted
};

// Throws DataError if a file lacks tokens or does not hold all the values it claims (see
// H5Integers), if documents do not fit the tokens, or if a token lies outside the vocabulary;
// PolicyError if a label beside a file (label_file.h) has a classification that is not in
// options.classifications.
PackReport convert(const ConvertOptions& options, const RankGroup& ranks);

}  // namespace trireme
