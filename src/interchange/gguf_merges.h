// How the merges of a tokenizer are written for llama.cpp: the part of gguf_vocabulary.h that
// depends on the kind of BPE. Pure functions.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/tokens/bpe_tokenizer.h"

namespace trireme {

struct GgufMerges {
  std::string model = {};                // "gpt2" or "llama"
  std::string pre = {};                  // how text is cut into words
  std::vector<std::string> merges = {};  // of gpt2: "a b", the first one first
  // Of llama: one per id of the model.
  std::vector<float> scores = {};
  std::unordered_set<std::int32_t> bytes = {};  // ids of <0x00> to <0xFF>
  std::int32_t unknown = -1;
  bool adds_blank = false;                  // in front of a text
  std::vector<std::string> otherwise = {};  // what llama.cpp does in another way
};

// definition: that of the tokenizer. rows: the ids of the model. Throws DataError for a tokenizer
// that llama.cpp does not have, because its ids would be others.
GgufMerges gguf_merges(const nlohmann::json& definition, const BpeTokenizer& tokenizer,
                       std::int64_t rows);

}  // namespace trireme
