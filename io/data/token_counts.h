// Counts how often each token occurs in a dataset.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/data/dataset.h"

namespace trireme {

struct TokenCounts {
  std::vector<std::int64_t> by_token;  // [vocab]
  std::int64_t tokens = 0;             // their sum
};

// Counts roughly `max_tokens` tokens at most, in token runs spread evenly over the dataset. Returns
// nothing if the vocabulary is too large to count.
std::optional<TokenCounts> count_tokens(const Dataset& dataset, std::int64_t max_tokens);

}  // namespace trireme
