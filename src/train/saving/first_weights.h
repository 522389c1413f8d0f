// A run that trains all weights of an imported model (checkpoint.init_from) records in its own
// checkpoints where that model is, for exports: the files of the tokenizer lie beside it, and its
// manifest has what the import kept of its configuration. The record passes to runs that begin with
// these checkpoints. Runs with adapters record their base instead (base_weights.h).
//
//   "first_weights": {"base": FOLDER, "base_sha256": of its manifest,
//                     "imported": {"model_type": ..., "special_ids": ..., "generation_ends": ...},
//                     "tokenizer_digest": of the files beside it, "" if none can be read}
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint/store.h"
#include "src/base/json_value.h"

namespace trireme {

inline constexpr const char* kFirstWeightsField = "first_weights";
// The field of `imported` with the ids that a generation_config.json has named, as a list.
inline constexpr const char* kGenerationEndsField = "generation_ends";

// Returns the record for a run that takes its first weights from `base`; nothing if they were not
// imported. tokenizer_digest: that of the files beside them (step_tokenizer.h).
std::optional<JsonValue> first_weights_of(const StepFolder& base,
                                          const std::string& tokenizer_digest);
// Returns the record in a checkpoint from which a run resumes; nothing if it has none.
std::optional<JsonValue> recorded_first_weights(const Manifest& manifest);

struct FirstWeights {
  std::filesystem::path folder;
  bool is_there = false;  // false if another checkpoint, or none, is in the folder now
  std::optional<std::string> tokenizer_digest = {};  // as recorded; earlier versions did not
};
// Looks for the model that a step's record names. Returns nothing if it has no record. Throws
// DataError if that is malformed.
std::optional<FirstWeights> find_first_weights(const StepFolder& step);

}  // namespace trireme
