// ZeroLayout describes how the ranks of a data-parallel group divide what belongs to the parameters
// of one store (Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models, 2020). A plain value; the store outlives it.
//
//   level  every rank holds              and only its shard of
//   0      everything                    -
//   1      working copies, gradients     masters and moments
//   2      working copies                + gradients
//   3      -                             + working copies
//
// Each bucket is divided into as many equal blocks as there are ranks, and rank r has block r. A
// block is a multiple of kSumBlock elements, so that the last ones may reach beyond the bucket's
// end.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "src/compute/device_context.h"
#include "src/parallel/gradient_buckets.h"
#include "src/tensor/place.h"
#include "src/trace/span_log.h"

namespace trireme {

inline constexpr std::int64_t kDefaultBucketBytes = std::int64_t{25} << 20;

// ZeroTools holds what the classes of data parallelism use; all of it outlives them.
struct ZeroTools {
  Communicator& dp;          // the ranks that share the global batch
  DeviceContext& context;    // its exchange memory should be that of `dp`, for speed
  SpanLog* spans = nullptr;  // log for the time spent waiting for `dp`; null for none
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
  // Returns the level, which is 0 for a group of one rank.
  int level() const { return level_; }
  int buckets() const { return static_cast<int>(buckets_.size()); }
  const GradientBucket& bucket(int b) const { return buckets_[static_cast<std::size_t>(b)]; }
  // Returns the bucket of a parameter, or -1 if the parameter is not trained on this rank.
  int bucket_of(ParameterId id) const { return bucket_of_[static_cast<std::size_t>(id)]; }
  // Returns the buckets that hold the parameters [first, end), in the order of the parameters.
  std::vector<int> buckets_of(ParameterId first, ParameterId end) const;

  // Return the number of elements of one block, and of all blocks together.
  std::int64_t block(int b) const;
  std::int64_t padded(int b) const { return level_ == 0 ? bucket(b).elements : block(b) * ranks(); }
  // Returns the flat elements of the store that this rank owns: at level 0, the whole bucket.
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
