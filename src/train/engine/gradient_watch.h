// GradientWatch passes gradients from a backward pass to their sink. It computes their digests, so
// that a micro-batch that is computed again can be compared with the first time, and contains the
// fault point at which a planned fault changes a gradient. Owned by the step's work, for one
// micro-batch of one chunk; one thread.
#pragma once

#include <cstdint>
#include <span>
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

  // Returns the digests of the gradients, i64 [parameters], of which those seen so far are set.
  // Empty without digests.
  ConstView digests() const { return digests_.empty() ? ConstView() : digests_.view(); }
  // Returns the digest of all gradients so far from a copy of digests(). It does not depend on
  // their order.
  std::uint64_t digest(std::span<const std::int64_t> digests) const;

 private:
  const ParameterStore& parameters_;
  GradientSink& to_;
  Tensor digests_;                  // i64 [parameters]; empty without digests
  std::vector<ParameterId> ready_;  // the parameters seen so far, in the order of backward
};

}  // namespace trireme
