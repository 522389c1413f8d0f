// AdamW (Loshchilov and Hutter, 2019) over the ranges of a store that MasterWeights hold: decoupled
// weight decay on the parameters that ask for it. m and v are f32, laid out like the ranges; gaps
// stay zero. An element's result does not depend on how ranges are cut. Owned by the training loop.
#pragma once

#include "src/kernels/kernels.h"
#include "src/nn/master_weights.h"

namespace trireme {

struct AdamWOptions {
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
  // ConfigError for values that mean nothing.
  void validate() const;
};

struct AdamWUpdate {
  std::int64_t step = 1;  // number of this update, from 1
  float lr = 0;
  float gradient_scale = 1;  // clipping, loss scaling
};

class AdamWOptimizer {
 public:
  // m and v start at zero. The masters outlive the optimizer.
  AdamWOptimizer(MasterWeights& masters, const AdamWOptions& options);

  // Updates masters, computes, m and v of one range of the masters from its gradients, f32
  // [elements of the range].
  void step(int range, const ConstView& gradients, const AdamWUpdate& update,
            const Kernels& kernels, Stream& stream);

  const AdamWOptions& options() const { return options_; }
  MasterWeights& masters() const { return masters_; }
  // f32 [elements of the range].
  View m(int range) const { return part(m_, range); }
  View v(int range) const { return part(v_, range); }

 private:
  View part(const Tensor& state, int range) const {
    return state.view().slice(starts_[static_cast<std::size_t>(range)],
                              masters_.held(range).computes.count);
  }

  MasterWeights& masters_;
  AdamWOptions options_;
  std::vector<std::int64_t> starts_;  // of each range in m_ and v_
  Tensor m_;
  Tensor v_;
};

}  // namespace trireme
