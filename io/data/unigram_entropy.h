// Computes the unigram entropy of a dataset: the loss of a model that knows only how often each
// token occurs, which a trained model should stay well below. H = -sum p ln p (Shannon 1948), in
// nats.
#pragma once

#include <cstdint>
#include <optional>

#include "io/data/dataset.h"

namespace trireme {

struct UnigramEntropy {
  double nats = 0;
  std::int64_t tokens = 0;  // number of tokens counted
};

// Counts roughly `max_tokens` tokens at most, in token runs spread evenly over the dataset. Returns
// nothing if the vocabulary is too large to count.
std::optional<UnigramEntropy> unigram_entropy(const Dataset& dataset, std::int64_t max_tokens);

}  // namespace trireme
