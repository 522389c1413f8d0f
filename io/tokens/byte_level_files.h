// Makes the tokenizer.json of a trained byte-level BPE, in the form that Hugging Face's tokenizers
// write. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/tokens/bpe_trainer.h"

namespace trireme {

// The names of the patterns that cut text into words: those of GPT-2, Llama 3 and Qwen2.
const std::vector<std::string>& training_patterns();
// Returns the pre-tokenizer that cuts by a pattern and makes bytes. Precondition: the name is one
// of training_patterns().
nlohmann::json byte_level_pre_tokenizer(std::string_view pattern);
// Returns the contents of a tokenizer.json. special: the first of trained.tokens.
nlohmann::json byte_level_definition(const TrainedBpe& trained,
                                     const std::vector<std::string>& special,
                                     std::string_view pattern);

}  // namespace trireme
