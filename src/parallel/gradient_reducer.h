// GradientReducer: from the gradients of micro-batches to the gradient of the global batch. Owns
// the flat f32 gradient buffers (the layout of the ParameterStore, gaps zero) and works in buckets,
// flat ranges of about bucket_bytes in reverse flat order, which is about the order of backward: as
// soon as all gradients of a bucket are there it is added to the sums before it, and after the last
// micro-batch handed to the communicator, which reduces it while backward goes on.
//
//   reducer.begin_step();
//   for m in reducer.micro_batches():            numbers within the global batch
//     reducer.begin_micro_batch(m);
//     model.forward_backward(...);               with run.gradients = &reducer
//   View gradient = reducer.finish_step();       summed over all micro-batches of all ranks
//
// elastic: the canonical tree over the micro-batches (reduction_tree.h), so that every number of
// ranks gives the same bits; stack_height(M/dp) buffers. layout and fast: one after the other, two
// buffers. Owned by the training loop, used by its thread alone.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/communicator.h"
#include "src/kernels/kernels.h"
#include "src/nn/gradient_sink.h"
#include "src/parallel/gradient_buckets.h"
#include "src/parallel/reduction_tree.h"
#include "src/parallel/reproducibility.h"

namespace trireme {

inline constexpr std::int64_t kDefaultBucketBytes = std::int64_t{25} << 20;

class GradientReducer : public GradientSink {
 public:
  struct Options {
    std::int64_t micro_batches = 1;  // a step, over all ranks
    Reproducibility reproducibility = Reproducibility::elastic;
    std::int64_t bucket_bytes = kDefaultBucketBytes;
  };
  struct Timings {               // of the last step
    double exposed_seconds = 0;  // finish_step() waited for the communicator
    double merge_seconds = 0;    // adding micro-batches inside the rank
  };

  // `dp` is the group of ranks that share the global batch. All arguments outlive the reducer.
  GradientReducer(ParameterStore& parameters, Communicator& dp, const Kernels& kernels,
                  Stream& stream, Pool& pool, const Options& options);
  ~GradientReducer() override;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // The numbers of this rank's micro-batches within the global batch.
  LeafRange micro_batches() const { return leaves_; }

  void begin_step();
  // Micro-batches come in rising order.
  void begin_micro_batch(std::int64_t m);
  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override;
  // Once a parameter and micro-batch, in any order; the same order on all ranks is fastest.
  void ready(ParameterId id) override;
  // f32 [flat_elements]; valid until the next begin_step().
  View finish_step();

  const Timings& timings() const { return timings_; }
  const std::vector<GradientBucket>& buckets() const { return buckets_; }
  // Bytes of gradient buffers held now.
  std::int64_t buffer_bytes() const;

 private:
  static constexpr std::int64_t kNone = -1;

  int merges_now() const;
  View buffer(int level, const GradientBucket& bucket) const;
  void bucket_complete(std::size_t index);
  void start_reductions();
  void check_complete() const;

  ParameterStore& parameters_;
  Communicator& dp_;
  const Kernels& kernels_;
  Stream& stream_;
  Pool& pool_;
  Options options_;
  LeafRange leaves_;
  std::vector<GradientBucket> buckets_;
  std::vector<int> bucket_of_;   // by ParameterId
  std::vector<Buffer> buffers_;  // the stack of partial sums, from the bottom

  std::int64_t next_leaf_ = kNone;   // the micro-batch that comes next, within a step
  int height_ = 0;                   // buffers of the stack in use, the current one included
  std::vector<bool> is_ready_;       // by ParameterId, of the current micro-batch
  std::vector<int> missing_;         // gradients that a bucket still waits for
  std::size_t next_bucket_ = 0;      // reductions start in bucket order on every rank
  std::vector<Pending> reductions_;  // of this step
  Timings timings_;
};

}  // namespace trireme
