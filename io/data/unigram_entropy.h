// Computes the unigram entropy of a dataset: the loss of a model that knows only how often each
// token occurs, which a trained model should stay well below. H = -sum p ln p (Shannon 1948), in
// nats.
#pragma once

#include "io/data/token_counts.h"

namespace trireme {

double unigram_entropy(const TokenCounts& counts);

}  // namespace trireme
