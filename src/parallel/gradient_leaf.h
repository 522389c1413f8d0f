// GradientLeaf: the gradients of one micro-batch, on their way into a GradientReducer. Holds a
// buffer a bucket, from the first gradient that is asked for until the bucket is handed on. Owned
// by the reducer; one thread.
#pragma once

#include <functional>
#include <vector>

#include "src/nn/gradient_sink.h"
#include "src/parallel/gradient_memory.h"

namespace trireme {

class GradientLeaf : public GradientSink {
 public:
  // announce: called with every bucket whose gradients are all there.
  GradientLeaf(const ZeroLayout& layout, GradientMemory& memory,
               std::function<void(int bucket)> announce);

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override;
  void ready(ParameterId id) override;

  bool complete(int bucket) const { return missing_[static_cast<std::size_t>(bucket)] == 0; }
  // Once, of a complete bucket.
  Buffer take(int bucket) { return std::move(buffers_[static_cast<std::size_t>(bucket)]); }
  // InternalError that names a parameter whose gradient is missing.
  void check_complete() const;

 private:
  int bucket_of(ParameterId id) const;

  const ZeroLayout& layout_;
  GradientMemory& memory_;
  std::function<void(int)> announce_;
  std::vector<bool> is_ready_;   // by ParameterId
  std::vector<int> missing_;     // gradients that a bucket still waits for
  std::vector<Buffer> buffers_;  // of each bucket, f32 [padded]
};

}  // namespace trireme
