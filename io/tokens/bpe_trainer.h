// Trains a byte-level BPE: finds the merges of the most frequent pairs of neighbours (Sennrich et
// al. 2016), in the order in which Hugging Face's tokenizers find them, including what that does
// with equal counts: the pair with the smaller ids is merged first. A pure function.
//
//   ids:   special tokens | the 256 bytes, by the number of their character | a token per merge
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trireme {

struct BpeTrainingOptions {
  std::int64_t vocab = 0;          // number of ids, if the words have enough pairs
  std::int64_t min_frequency = 2;  // of a pair, to be merged
  std::vector<std::string> special = {};
};

// Words with the numbers of their occurrences; each word is of bytes.
using WordCounts = std::vector<std::pair<std::string, std::int64_t>>;

struct TrainedBpe {
  // The texts of the tokens by id. All but special ones are written with byte characters
  // (byte_characters.h).
  std::vector<std::string> tokens;
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;  // by rank
  std::vector<std::int64_t> tokens_per_word;                  // of each word, in their order
};

// The result does not depend on the order of the words. Throws ConfigError if options.vocab has no
// room for the special tokens and the bytes.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainingOptions& options);

}  // namespace trireme
