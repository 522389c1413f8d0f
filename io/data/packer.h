// Packs text into datasets: lists the inputs once, plans, and writes the shards
// (dataset_writing.h). All ranks call pack() together.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/chat/chat_template.h"
#include "io/data/dataset_writing.h"
#include "io/data/duplicates.h"
#include "io/data/tokenizer.h"

namespace trireme {

struct PackOptions {
  std::vector<std::string> inputs;  // files and folders
  std::filesystem::path out;
  std::vector<std::string> exclude;  // shell patterns
  std::string field = "text";        // name of the jsonl field that holds the text
  std::string tokenizer = "bytes";
  // If set, each line is a conversation in the field, and the dataset gets a loss mask.
  std::optional<ChatTemplate> chat = {};
  std::function<std::unique_ptr<Tokenizer>(const std::string&)> open_tokenizer = make_tokenizer;
  std::string source;  // free text that is stored in the manifest and the shards
  std::int64_t shard_bytes = std::int64_t{1} << 30;
  std::optional<Label> label = {};
  std::int64_t alignment_bytes = 4096;
  // If above 0, makes two datasets, OUT/train and OUT/validation, split by document.
  double validation_fraction = 0;
  // Which documents that repeat earlier ones are left out. They are looked for among all inputs,
  // whatever the split.
  Deduplication deduplication = Deduplication::none;
  PackProgress progress;
  DatasetKeyMaker make_key = {};  // empty: the shards are not encrypted
};

// Returns one report per dataset. Throws what write_dataset() throws, ConfigError for options out
// of range, and NotFound for an input that does not exist.
std::vector<PackReport> pack(const PackOptions& options, const RankGroup& ranks);

}  // namespace trireme
