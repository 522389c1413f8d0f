// GradientLeaf holds the gradients of one micro-batch until a GradientReducer adds them to its
// sums: one buffer per bucket, from the first request for a gradient until the bucket is taken. A
// bucket may also be computed elsewhere, in memory that is needed again at once (StagedGradients),
// and is then handed over. Owned by the reducer; one thread.
#pragma once

#include <functional>
#include <vector>

#include "src/nn/gradient_sink.h"
#include "src/parallel/gradient_memory.h"

namespace trireme {

class GradientLeaf : public GradientSink {
 public:
  // announce: called with each bucket as soon as all of its gradients are ready. The layout and
  // memory outlive this.
  GradientLeaf(const ZeroLayout& layout, GradientMemory& memory,
               std::function<void(int bucket)> announce);

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override;
  void ready(ParameterId id) override;

  // Takes over f32 [padded] of a bucket whose parameters `ready` are final. The memory is not used
  // after the call returns, but for work that is on the stream then.
  void receive(int bucket, const View& values, const std::vector<ParameterId>& ready);
  // Returns the values of a complete bucket that lies in such memory; empty if it has a buffer.
  View staged(int bucket) const { return bucket == staged_bucket_ ? staged_ : View{}; }

  bool complete(int bucket) const { return missing_[static_cast<std::size_t>(bucket)] == 0; }
  // Moves the buffer of a complete bucket out, or a copy of what is staged; once per bucket.
  Buffer take(int bucket);
  // Says that the values that are staged have been used.
  void release_staged() { staged_bucket_ = -1; }
  // Throws an InternalError that names a parameter whose gradient is missing, if there is one.
  void check_complete() const;

 private:
  int bucket_of(ParameterId id) const;

  const ZeroLayout& layout_;
  GradientMemory& memory_;
  std::function<void(int)> announce_;
  std::vector<bool> is_ready_;   // by ParameterId
  std::vector<int> missing_;     // number of gradients that each bucket still waits for
  std::vector<Buffer> buffers_;  // by bucket, f32 [padded]
  int staged_bucket_ = -1;       // -1: none
  View staged_;
};

}  // namespace trireme
