#include "src/parallel/gradient_reducer.h"

#include <algorithm>

#include "src/base/stopwatch.h"

namespace trireme {
GradientReducer::GradientReducer(ParameterStore& parameters, Communicator& dp,
                                 const Kernels& kernels, Stream& stream, Pool& pool,
                                 const Options& options)
    : parameters_(parameters),
      dp_(dp),
      kernels_(kernels),
      stream_(stream),
      pool_(pool),
      options_(options) {
  check_reduction(options.micro_batches, dp.size(), options.reproducibility);
  leaves_ = part_of_leaves(options.micro_batches, dp.size(), dp.rank());
  check(options.reproducibility != Reproducibility::elastic ||
            is_node(leaves_, options.micro_batches),
        "a rank's micro-batches are a node of the tree");
  buckets_ = cut_into_buckets(parameters, options.bucket_bytes);
  bucket_of_.resize(static_cast<std::size_t>(parameters.count()));
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    for (const ParameterId id : buckets_[index].parameters) {
      bucket_of_[static_cast<std::size_t>(id)] = static_cast<int>(index);
    }
  }
}

// An error passes through: nobody will wait for what is under way, and the buffers go away.
GradientReducer::~GradientReducer() {
  for (Pending& reduction : reductions_) {
    reduction.abandon();
  }
}

void GradientReducer::begin_step() {
  check(reductions_.empty(), "a step ends before the next begins");
  next_leaf_ = leaves_.lo;
  height_ = 0;
  timings_ = {};
}

void GradientReducer::begin_micro_batch(std::int64_t m) {
  check(next_leaf_ != kNone && m == next_leaf_ && m < leaves_.hi,
        "micro-batches come in order, within a step");
  if (m > leaves_.lo) {
    check_complete();
    height_ -= merges_now();
  }
  next_leaf_ += 1;
  height_ += 1;
  if (static_cast<int>(buffers_.size()) < height_) {
    buffers_.push_back(pool_.allocate(parameters_.flat_elements() * size_of(DType::f32)));
    // The gaps between parameters take part in sums and stay zero.
    kernels_.fill(stream_, buffers_.back().view(DType::f32), 0);
  }
  is_ready_.assign(static_cast<std::size_t>(parameters_.count()), false);
  missing_.clear();
  for (const GradientBucket& bucket : buckets_) {
    missing_.push_back(static_cast<int>(bucket.parameters.size()));
  }
  next_bucket_ = 0;
}

View GradientReducer::gradient(ParameterId first, int count) {
  return buffers_[static_cast<std::size_t>(height_ - 1)]
      .view(DType::f32)
      .slice(parameters_[first].offset, parameters_.joined_elements(first, count));
}

void GradientReducer::ready(ParameterId id) {
  const auto index = static_cast<std::size_t>(id);
  check(index < is_ready_.size() && !is_ready_[index],
        "a gradient is ready once a parameter and micro-batch");
  is_ready_[index] = true;
  const auto bucket = static_cast<std::size_t>(bucket_of_[index]);
  if (--missing_[bucket] == 0) {
    bucket_complete(bucket);
  }
}

// How many sums of the stack the current micro-batch, its top, falls into.
int GradientReducer::merges_now() const {
  const std::int64_t leaf = next_leaf_ - 1;
  if (options_.reproducibility == Reproducibility::elastic) {
    return merges_after(leaf, leaves_);
  }
  return leaf == leaves_.lo ? 0 : 1;
}

View GradientReducer::buffer(int level, const GradientBucket& bucket) const {
  return buffers_[static_cast<std::size_t>(level)]
      .view(DType::f32)
      .slice(bucket.first, bucket.elements);
}

void GradientReducer::bucket_complete(std::size_t index) {
  const Stopwatch watch;
  const int top = height_ - 1;
  for (int level = top; level > top - merges_now(); --level) {
    kernels_.add(stream_, buffer(level - 1, buckets_[index]), buffer(level, buckets_[index]));
  }
  timings_.merge_seconds += watch.seconds();
  if (next_leaf_ == leaves_.hi) {
    start_reductions();
  }
}

// In bucket order, whatever the order of completion: all ranks start the same operations alike.
void GradientReducer::start_reductions() {
  for (; next_bucket_ < buckets_.size() && missing_[next_bucket_] == 0; ++next_bucket_) {
    reductions_.push_back(dp_.all_reduce(buffer(0, buckets_[next_bucket_]), ReduceOp::sum));
  }
}

View GradientReducer::finish_step() {
  check(next_leaf_ == leaves_.hi, "a step ends after all of its micro-batches");
  check_complete();
  const Stopwatch watch;
  for (Pending& reduction : reductions_) {
    reduction.wait();
  }
  timings_.exposed_seconds = watch.seconds();
  reductions_.clear();
  next_leaf_ = kNone;
  return buffers_.front().view(DType::f32);
}

void GradientReducer::check_complete() const {
  const auto missing = std::find(is_ready_.begin(), is_ready_.end(), false);
  if (missing != is_ready_.end()) {
    const auto id = static_cast<ParameterId>(missing - is_ready_.begin());
    check(false, fmt::format("backward gave no gradient for {}", parameters_[id].name).c_str());
  }
}

std::int64_t GradientReducer::buffer_bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : buffers_) {
    bytes += buffer.bytes();
  }
  return bytes;
}

}  // namespace trireme
