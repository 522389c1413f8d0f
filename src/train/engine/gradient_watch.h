// GradientWatch: stands between a backward pass and the sink of its gradients. It digests them, so
// that a micro-batch that is computed again can be compared with the first time, and it is where a
// planned fault changes one. Owned by the step's work, for one micro-batch of one chunk; one
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/gradient_sink.h"

namespace trireme {

class GradientWatch : public GradientSink {
 public:
  // Both arguments outlive it. digests: whether gradients are digested.
  GradientWatch(const ParameterStore& parameters, GradientSink& to, bool digests);

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override { return to_.gradient(first, count); }
  void ready(ParameterId id) override;

  // Waits for the device and returns the digest of all gradients so far, which does not depend on
  // their order; 0 if none are digested.
  std::uint64_t digest() const;

 private:
  const ParameterStore& parameters_;
  GradientSink& to_;
  Tensor digests_;                  // i64 [parameters]; empty if none are digested
  std::vector<ParameterId> ready_;  // in the order of backward
};

}  // namespace trireme
