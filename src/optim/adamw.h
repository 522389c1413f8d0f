// AdamW (Loshchilov and Hutter, 2019) over a whole ParameterStore: decoupled weight decay on the
// parameters that ask for it. m and v are flat f32 buffers laid out like the store; gaps stay zero.
// Owned by the training loop.
#pragma once

#include "src/kernels/kernels.h"
#include "src/nn/parameter.h"

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
  // After store.allocate(). m and v start at zero.
  AdamWOptimizer(ParameterStore& store, const AdamWOptions& options);

  // Updates values, computes, m and v from gradients, f32 [flat_elements].
  void step(const ConstView& gradients, const AdamWUpdate& update, const Kernels& kernels,
            Stream& stream);
  // The same on the elements [first, first + count) of the flat buffers alone.
  void step_range(const ConstView& gradients, std::int64_t first, std::int64_t count,
                  const AdamWUpdate& update, const Kernels& kernels, Stream& stream);

  const AdamWOptions& options() const { return options_; }
  // f32 [flat_elements], and the part of one parameter.
  View m() const { return m_.view(); }
  View v() const { return v_.view(); }
  View m(ParameterId id) const { return part(m(), id); }
  View v(ParameterId id) const { return part(v(), id); }

 private:
  // A range of the flat buffers whose parameters all decay or all don't.
  struct DecayRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool decays = false;
  };
  View part(const View& flat, ParameterId id) const {
    return flat.slice(store_[id].offset, store_[id].elements());
  }

  ParameterStore& store_;
  AdamWOptions options_;
  Tensor m_;
  Tensor v_;
  std::vector<DecayRange> ranges_;
};

}  // namespace trireme
