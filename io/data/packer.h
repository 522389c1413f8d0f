// Packs text into datasets: lists the inputs once, plans, and writes the shards
// (dataset_writing.h). Called by all ranks together.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/data/dataset_writing.h"

namespace trireme {

struct PackOptions {
  std::vector<std::string> inputs;  // files and folders
  std::filesystem::path out;
  std::vector<std::string> exclude;  // shell patterns
  std::string field = "text";        // of jsonl
  std::string tokenizer = "bytes";
  std::string source;  // free text, kept in manifest and shards
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::int64_t alignment_bytes = 4096;
  // Above 0: two datasets, OUT/train and OUT/validation, split by document.
  double validation_fraction = 0;
  PackProgress progress;
};

// One report a dataset. Throws as write_dataset does; ConfigError for options out of range,
// NotFound for an input that is not there.
std::vector<PackReport> pack(const PackOptions& options, const RankGroup& ranks);

}  // namespace trireme
