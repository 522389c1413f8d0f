// GradientBucket: a flat range of a store's parameters whose gradients are summed and reduced as
// one, and which ZeRO shards as one. Pure functions.
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

// Cuts the trained parameters into buckets, the last ones first: about the order of backward. A
// bucket is closed once it holds bucket_bytes of f32; what is larger is a bucket of its own. Joined
// parameters stay together. Together the buckets hold every trained parameter, and the gaps behind
// them, once. borders: parameters, rising, where a bucket had better begin, such as the first of
// each layer; a bucket begins elsewhere only inside what would hold more than twice bucket_bytes.
std::vector<GradientBucket> cut_into_buckets(const ParameterStore& parameters,
                                             std::int64_t bucket_bytes,
                                             const std::vector<ParameterId>& borders = {});

}  // namespace trireme
