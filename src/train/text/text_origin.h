// What checkpoints know about a model's text beyond its weights: where the files of its tokenizer
// lie, and which tokens end a text, as the files of an imported model say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/checkpoint/store.h"

namespace trireme {

struct TextOrigin {
  // Folders that may hold the tokenizer's files, the nearest first: the step's own, that of the
  // imported model with which its run began, if it is still there, and that of the dataset from
  // which it learned; then those of its base.
  std::vector<std::filesystem::path> folders;
  // eos_token_id of the imported model, in its generation_config.json or, without that file, in its
  // config.json; empty for other models, and after training on tokens of another tokenizer, where
  // these ids stand for something else.
  std::vector<std::int32_t> ends;
  // Whether the step is an imported model that has not learned since, so that no other token ends
  // its text; a run also learns the token that ends a document of its dataset.
  bool has_no_other_ends = false;
};

// Returns the tokens that end a text: `ends`, and the one that ends a document unless there are no
// others. end_of_document: negative if it is not known.
std::vector<std::int32_t> all_ends(const TextOrigin& origin, std::int32_t end_of_document);

// base: that of a step of adapters, else null. Throws DataError if an id is not below `vocab`.
TextOrigin text_origin_of(const StepFolder& step, const StepFolder* base, std::int64_t vocab);

}  // namespace trireme
