// GradientWatch passes gradients from a backward pass to their sink. It computes their digests, so
// that a micro-batch that is computed again can be compared with the first time, and contains the
// fault point at which a planned fault changes a gradient. Owned by the step's work, for one
// micro-batch of one chunk; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/gradient_sink.h"

namespace trireme {

class GradientWatch : public GradientSink {
 public:
  // Both arguments outlive it. digests: whether to compute digests.
  GradientWatch(const ParameterStore& parameters, GradientSink& to, bool digests);

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override { return to_.gradient(first, count); }
  void ready(ParameterId id) override;

  // Waits for the device and returns the digest of all gradients so far, which does not depend on
  // their order; 0 without digests.
  std::uint64_t digest() const;

 private:
  const ParameterStore& parameters_;
  GradientSink& to_;
  Tensor digests_;                  // i64 [parameters]; empty without digests
  std::vector<ParameterId> ready_;  // the parameters seen so far, in the order of backward
};

}  // namespace trireme
