// The unigram entropy of a dataset: the loss of a model that knows how often each token occurs and
// nothing else; a trained one has to be well below. H = -sum p ln p (Shannon 1948), in nats.
#pragma once

#include <cstdint>
#include <optional>

#include "io/data/dataset.h"

namespace trireme {

struct UnigramEntropy {
  double nats = 0;
  std::int64_t tokens = 0;  // counted
};

// Counts at most about `max_tokens`, in pieces spread evenly over the dataset. Nothing for a
// vocabulary too large to be counted.
std::optional<UnigramEntropy> unigram_entropy(const Dataset& dataset, std::int64_t max_tokens);

}  // namespace trireme
