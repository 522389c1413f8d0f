// ResidualLayer computes stream += dropout(branch(norm(stream))). Every transformer block consists
// of two of these, one with attention and one with an MLP. It has no state.
#pragma once

#include <memory>

#include "src/nn/norm.h"

namespace trireme {

struct ResidualDropout {
  float probability = 0;
  std::uint32_t site = 0;  // number of this dropout in the model; the embedding's is 0
};

// y = dropout(x), T [B,T,C] or this rank's rows of it, keyed by run.dropout; y may be x. Backward
// is the same call on the gradient.
void apply_dropout(const ResidualDropout& dropout, const Tensor& x, const Tensor& y, Run& run);
inline bool drops(const ResidualDropout& dropout, const Run& run) {
  return run.training && dropout.probability > 0;
}

class ResidualLayer : public Layer {
 public:
  // lean: the normalized stream is not saved for backward, which computes it again.
  ResidualLayer(const Norm& norm, std::unique_ptr<Branch> branch, const ResidualDropout& dropout,
                bool lean)
      : norm_(norm), branch_(std::move(branch)), dropout_(dropout), lean_(lean) {}

  Residual forward(Residual stream, Saved& saved, Run& run) const override;
  Tensor backward(Tensor d, Saved& saved, Run& run) const override;

 private:
  Norm norm_;
  std::unique_ptr<Branch> branch_;
  ResidualDropout dropout_;
  bool lean_;
};

}  // namespace trireme
