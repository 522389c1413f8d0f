#include "src/parallel/gradient_buckets.h"

#include <algorithm>

namespace trireme {

std::vector<GradientBucket> cut_into_buckets(const ParameterStore& parameters,
                                             std::int64_t bucket_bytes) {
  check(bucket_bytes > 0, "a bucket holds something");
  const std::int64_t full = (bucket_bytes + size_of(DType::f32) - 1) / size_of(DType::f32);
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  std::int64_t end = parameters.flat_elements();
  const auto close = [&] {
    if (!open.parameters.empty()) {
      buckets.push_back(std::move(open));
      open = {};
    }
  };
  for (ParameterId id = parameters.count() - 1; id >= 0; --id) {
    const std::int64_t first = parameters[id].offset;
    if (end - first >= full) {
      close();
    }
    open.parameters.push_back(id);
    open.first = first;
    open.elements += end - first;
    end = first;
    // Joined parameters have one gradient.
    if (open.elements >= full && !parameters[id].joined) {
      close();
    }
  }
  close();
  return buckets;
}

}  // namespace trireme
