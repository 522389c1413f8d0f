// The tokenizer of a model that is exported. An imported checkpoint holds its files, and so does
// the one with whose weights a run began. The checkpoints of a run know the digest of its tokenizer
// and the folder of the dataset in which `data pack` stored the files: these are taken if the run
// began with new weights, or with those of a model that has another tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "src/interchange/checkpoint_weights.h"

namespace trireme {

struct ModelTokenizer {
  // Whose carried files are those of the model; empty if there are none.
  std::filesystem::path folder;
  // Whose generation_config.json is that of the model if `folder` is a dataset's, or empty.
  std::filesystem::path settings;
  bool is_bytes = false;
  // Whether the model has seen texts as those who made the tokenizer put them, with its first
  // token in front. Otherwise it has only seen tokens between documents.
  bool is_imported = true;
  // Whether the run has learned another tokenizer than that of the imported model.
  bool is_changed = false;
  std::optional<std::int32_t> end_of_document;  // if the digest is known, and the files are there
  std::string note;                             // for people who may not expect this tokenizer
  std::string warning;                          // what is missing, and why; or empty
};

// Files count only if they define the tokenizer of the digest that the step knows, if any. Throws
// DataError for malformed records.
ModelTokenizer find_model_tokenizer(const CheckpointWeights& weights);

}  // namespace trireme
