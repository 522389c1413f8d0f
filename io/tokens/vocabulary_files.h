// The byte-level tokenizers that are published as vocab.json and merges.txt: those of GPT-2 and
// Qwen2. Pure functions.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace trireme {

// Returns what the two texts define, in the form of a tokenizer.json. config: the contents of
// tokenizer_config.json, whose `tokenizer_class` counts; null if there is no such file: GPT-2's.
// Throws DataError, also for classes of other tokenizers, because the files do not say how those
// cut text into words, and for `add_prefix_space`, about which two tokenizers disagree.
nlohmann::json vocabulary_definition(std::string_view vocab, std::string_view merges,
                                     const nlohmann::json& config = nullptr);

}  // namespace trireme
