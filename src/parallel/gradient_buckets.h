// GradientBucket: a flat range of the gradients that is summed and reduced as one. Pure functions.
#pragma once

#include <vector>

#include "src/nn/parameter.h"

namespace trireme {

struct GradientBucket {
  std::int64_t first = 0;  // element in the flat buffer
  std::int64_t elements = 0;
  std::vector<ParameterId> parameters;
};

// Cuts the flat buffer into buckets, the last parameters first. A bucket is closed once it holds
// bucket_bytes; a parameter of that size or more is a bucket of its own. Together they cover every
// parameter, and the gaps behind them, once.
std::vector<GradientBucket> cut_into_buckets(const ParameterStore& parameters,
                                             std::int64_t bucket_bytes);

}  // namespace trireme
