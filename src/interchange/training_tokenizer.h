// The tokenizer of a model that began with new weights. Its checkpoints know the digest, and the
// folder of the dataset in which `data pack` stored the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint/store.h"

namespace trireme {

struct TrainingTokenizer {
  std::filesystem::path folder;  // of its files; empty if they are missing, and for "bytes"
  std::optional<std::int32_t> end_of_document;  // empty if the files are missing
  std::string missing;                          // why, for a warning; empty if nothing is missing
};

// Returns nothing for a step that knows no digest of a tokenizer, such as an imported one. Files
// count only if they define the tokenizer of this digest.
std::optional<TrainingTokenizer> find_training_tokenizer(const StepFolder& step);

}  // namespace trireme
