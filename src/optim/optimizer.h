// Optimizer: AdamW (Loshchilov and Hutter, 2019), SGD with momentum, or Muon (muon.h) over the
// ranges of a store that MasterWeights hold, with decoupled weight decay on the parameters that ask
// for it; and, if asked for, an exponential moving average of the weights. Muon is for the matrices
// inside the layers, which its ranges must hold whole; everything else is AdamW's. The state is
// f32, laid out like the ranges; gaps stay zero. Except with Muon an element's result does not
// depend on how ranges are cut. Owned by the training loop.
//
//   state      of                                          starts at
//   m, v       adamw; muon's embeddings, head and vectors  0
//   momentum   sgd; muon's matrices                        0
//   ema        ema > 0                                     the initial weights
//
// After update number t the average moves towards the weights by 1 - min(ema, (1 + t) / (10 + t)):
// the first updates, which leave the initial weights behind, count less than ema alone would have
// them (TensorFlow's ExponentialMovingAverage).
#pragma once

#include <string>
#include <string_view>

#include "src/kernels/kernels.h"
#include "src/nn/master_weights.h"

namespace trireme {

enum class OptimizerKind : std::uint8_t { adamw, sgd, muon };

// The average's name in checkpoints.
inline constexpr std::string_view kAverageName = "optimizer.ema";

// "adamw", "sgd" or "muon"; ConfigError for another word.
OptimizerKind parse_optimizer(std::string_view name);

struct OptimizerOptions {
  float beta1 = 0.9F;  // of adamw, and of muon beside its matrices, as the next two
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
  OptimizerKind kind = OptimizerKind::adamw;
  float momentum = 0.9F;  // of sgd and of muon's matrices, as the next
  bool nesterov = false;
  float ema = 0;  // decay of the average; 0: none is kept
  // ConfigError for values that mean nothing.
  void validate() const;
  // f32 numbers of state that are kept for each parameter element; one less for the elements of
  // Muon's matrices.
  int states() const { return (kind == OptimizerKind::sgd ? 1 : 2) + (ema > 0 ? 1 : 0); }
  // The f32 numbers of state for `held` elements of a store, which include all of Muon's matrices.
  std::int64_t state_elements(const ParameterStore& store, std::int64_t held) const;
  // Elements of f32 that steps over such a store work with.
  std::int64_t workspace(const ParameterStore& store) const;
};

struct OptimizerUpdate {
  std::int64_t step = 1;  // number of this update, from 1
  float lr = 0;
  float gradient_scale = 1;  // clipping, loss scaling
};

class Optimizer {
 public:
  // The state starts at zero, the average too. The masters outlive the optimizer.
  Optimizer(MasterWeights& masters, const OptimizerOptions& options);

  // The average becomes what the masters are; nothing without one.
  void start_average();
  // Updates masters, computes and state of one range of the masters from its gradients, f32
  // [elements of the range].
  void step(int range, const ConstView& gradients, const OptimizerUpdate& update,
            const Kernels& kernels, Stream& stream);

  const OptimizerOptions& options() const { return options_; }
  MasterWeights& masters() const { return masters_; }
  // The states by number, in [0, options().states()): the name as checkpoints have it,
  // "optimizer.m", or empty where the parameter has no use for it; and the values of elements
  // [first, first + count) of a range, f32 [count], all of parameters that use it.
  std::string_view state_name(int state, const Parameter& parameter) const;
  View state(int state, int range, std::int64_t first, std::int64_t count) const;
  // The same for a whole range.
  View state(int state, int range) const {
    return this->state(state, range, 0, masters_.held(range).computes.count);
  }
  // The number of f32 elements in all states.
  std::int64_t state_elements() const;

 private:
  void step_of_muon(int range, ParameterId id, const ConstView& gradients,
                    const OptimizerUpdate& update, const Kernels& kernels, Stream& stream);
  std::int64_t unused_before(int state, int range, std::int64_t first) const;
  void average(int range, const OptimizerUpdate& update, const Kernels& kernels,
               Stream& stream) const;

  MasterWeights& masters_;
  OptimizerOptions options_;
  std::vector<std::int64_t> matrices_before_;      // muon: elements of its matrices, by parameter
  std::vector<std::vector<std::int64_t>> starts_;  // of each range, by state
  std::vector<Tensor> states_;                     // the average is the last
  Tensor workspace_;                               // of muon
};

}  // namespace trireme
