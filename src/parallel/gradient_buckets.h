// A GradientBucket is a flat range of a store's parameters whose gradients are summed and reduced
// together, and which ZeRO shards as one. Plain values and pure functions.
#pragma once

#include <vector>

#include "src/nn/parameter.h"

namespace trireme {

struct GradientBucket {
  std::int64_t first = 0;  // element of the flat numbering, a multiple of kSumBlock
  std::int64_t elements = 0;
  ParameterId begin = 0;  // parameters [begin, end)
  ParameterId end = 0;
};

// Cuts the trained parameters into buckets, the last parameters first, which is about the order of
// backward. A bucket is closed once it holds bucket_bytes of f32, and holds at most twice that
// unless one parameter takes more. Joined parameters stay together. The buckets together hold every
// trained parameter, and the gap after it, once. borders: parameters, rising, at which buckets
// should begin, such as the first of each layer; a bucket begins elsewhere only if the parameters
// between two borders take more than twice bucket_bytes.
std::vector<GradientBucket> cut_into_buckets(const ParameterStore& parameters,
                                             std::int64_t bucket_bytes,
                                             const std::vector<ParameterId>& borders = {});

}  // namespace trireme
