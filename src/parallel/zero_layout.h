// ZeroLayout: how the ranks of a data-parallel group share what belongs to the parameters of one
// store (Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
// 2020). A value; the store outlives it.
//
//   level  every rank holds             and its shard alone of
//   0      everything                   -
//   1      computes, gradients          masters and moments
//   2      computes                     + gradients
//   3      -                            + computes
//
// Of every bucket rank r has block r of as many equal blocks as there are ranks. Blocks are
// multiples of kSumBlock, so that the last ones may reach beyond the bucket's end.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "src/compute/device_context.h"
#include "src/parallel/gradient_buckets.h"
#include "src/tensor/place.h"
#include "src/trace/span_log.h"

namespace trireme {

inline constexpr std::int64_t kDefaultBucketBytes = std::int64_t{25} << 20;

// What data parallelism works with; all outlive it.
struct ZeroTools {
  Communicator& dp;          // the ranks that share the global batch
  DeviceContext& context;    // its exchange memory is that of `dp`, for speed
  SpanLog* spans = nullptr;  // where waiting for `dp` is noted; null: nowhere
};

class ZeroLayout {
 public:
  struct Group {
    int ranks = 1;
    int rank = 0;
  };
  ZeroLayout(const ParameterStore& parameters, int level, Group group,
             std::vector<GradientBucket> buckets);

  const ParameterStore& parameters() const { return *parameters_; }
  int ranks() const { return group_.ranks; }
  int rank() const { return group_.rank; }
  // A rank alone has no one to share with: level 0.
  int level() const { return level_; }
  int buckets() const { return static_cast<int>(buckets_.size()); }
  const GradientBucket& bucket(int b) const { return buckets_[static_cast<std::size_t>(b)]; }
  // The bucket of a parameter; -1: it is not trained here.
  int bucket_of(ParameterId id) const { return bucket_of_[static_cast<std::size_t>(id)]; }
  // The buckets that hold [first, end), from low parameters to high.
  std::vector<int> buckets_of(ParameterId first, ParameterId end) const;

  // Elements of one of the blocks, and of all of them.
  std::int64_t block(int b) const;
  std::int64_t padded(int b) const { return level_ == 0 ? bucket(b).elements : block(b) * ranks(); }
  // What this rank owns: flat elements of the store. Level 0: the whole bucket.
  IndexRange owned(int b) const;
  std::int64_t owned_elements() const;

 private:
  const ParameterStore* parameters_;
  int level_;
  Group group_;
  std::vector<GradientBucket> buckets_;
  std::vector<int> bucket_of_;
};

}  // namespace trireme
