// GradientWatch: stands between a backward and where its gradients go: digests them, so that a
// micro-batch that is computed again can be compared with the first time, and is where a planned
// fault changes one. Owned by the step's work, for one micro-batch of one chunk; one thread.
#pragma once

#include <cstdint>

#include "src/nn/gradient_sink.h"

namespace trireme {

class GradientWatch : public GradientSink {
 public:
  // All outlive it. digest: takes in each gradient, in any order; null: none is made.
  GradientWatch(const ParameterStore& parameters, GradientSink& to, std::uint64_t* digest)
      : parameters_(parameters), to_(to), digest_(digest) {}

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override { return to_.gradient(first, count); }
  void ready(ParameterId id) override;

 private:
  const ParameterStore& parameters_;
  GradientSink& to_;
  std::uint64_t* digest_;
  bool passed_point_ = false;
};

}  // namespace trireme
