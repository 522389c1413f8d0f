#include "src/nn/recomputed_layers.h"

namespace trireme {

// The stream is saved as one tensor, the sum, with the bits that the first norm would have stored.
Residual RecomputedLayers::forward(Residual stream, Saved& saved, Run& run) const {
  if (!stream.delta.empty()) {
    run.kernels().add(run.stream(), stream.delta.view(), stream.x.view());
    stream = {std::move(stream.delta), {}};
  }
  saved.push(stream.x);
  Saved nothing = Saved::nothing();
  for (const auto& layer : layers_) {
    stream = layer->forward(std::move(stream), nothing, run);
  }
  return stream;
}

Tensor RecomputedLayers::backward(Tensor d, Saved& saved, Run& run) const {
  Residual stream{saved.pop(), {}};
  Saved again;
  for (const auto& layer : layers_) {
    stream = layer->forward(std::move(stream), again, run);
  }
  stream = {};
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    d = (*layer)->backward(std::move(d), again, run);
  }
  check(again.empty(), "backward pops all that forward pushed");
  return d;
}

}  // namespace trireme
