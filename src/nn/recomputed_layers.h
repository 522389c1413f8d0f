// RecomputedLayers are layers whose forward saves nothing but the stream that enters them (Chen et
// al., Training Deep Nets with Sublinear Memory Cost, 2016). Backward runs their forward again;
// dropout is keyed by the elements that it applies to, so that the bits are the same. They have no
// state.
#pragma once

#include <memory>
#include <vector>

#include "src/nn/layer.h"

namespace trireme {

class RecomputedLayers : public Layer {
 public:
  explicit RecomputedLayers(std::vector<std::unique_ptr<Layer>> layers)
      : layers_(std::move(layers)) {}

  Residual forward(Residual stream, Saved& saved, Run& run) const override;
  Tensor backward(Tensor d, Saved& saved, Run& run) const override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace trireme
