#include "src/parallel/zero_layout.h"

#include <algorithm>

namespace trireme {

ZeroLayout::ZeroLayout(const ParameterStore& parameters, int level, Group group,
                       std::vector<GradientBucket> buckets)
    : parameters_(&parameters),
      level_(group.ranks == 1 ? 0 : level),
      group_(group),
      buckets_(std::move(buckets)),
      bucket_of_(static_cast<std::size_t>(parameters.count()), -1) {
  check(level >= 0 && level <= 3, "ZeRO has levels 0 to 3");
  check(group.rank >= 0 && group.rank < group.ranks, "a rank is one of its group");
  for (int b = 0; b < this->buckets(); ++b) {
    for (ParameterId id = bucket(b).begin; id < bucket(b).end; ++id) {
      bucket_of_[static_cast<std::size_t>(id)] = b;
    }
  }
}

std::vector<int> ZeroLayout::buckets_of(ParameterId first, ParameterId end) const {
  std::vector<int> found;
  for (ParameterId id = first; id < end; ++id) {
    const int b = bucket_of(id);
    if (b >= 0 && (found.empty() || found.back() != b)) {
      found.push_back(b);
    }
  }
  return found;
}

std::int64_t ZeroLayout::block(int b) const {
  if (level_ == 0) {
    return bucket(b).elements;
  }
  const std::int64_t of_all = kSumBlock * ranks();
  return (bucket(b).elements + of_all - 1) / of_all * kSumBlock;
}

IndexRange ZeroLayout::owned(int b) const {
  const GradientBucket& whole = bucket(b);
  if (level_ == 0) {
    return {whole.first, whole.elements};
  }
  const std::int64_t from = std::min(block(b) * rank(), whole.elements);
  return {whole.first + from, std::min(block(b), whole.elements - from)};
}

std::int64_t ZeroLayout::owned_elements() const {
  std::int64_t elements = 0;
  for (int b = 0; b < buckets(); ++b) {
    elements += owned(b).count;
  }
  return elements;
}

}  // namespace trireme
