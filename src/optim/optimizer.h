// Optimizer runs AdamW (Loshchilov and Hutter, 2019), SGD with momentum, or Muon (muon.h) on the
// ranges of a store that MasterWeights hold. Parameters that ask for it get decoupled weight decay,
// and an exponential moving average of the weights can be kept. Muon updates the matrices inside
// the layers, which its ranges must hold whole, and leaves all other parameters to AdamW. The state
// is f32 and laid out like the ranges; gaps stay zero. Except with Muon, an element's result does
// not depend on how ranges are cut. Owned by the training loop.
//
//   state      kept for                                    starts at
//   m, v       adamw; muon's embeddings, head and vectors  0
//   momentum   sgd; muon's matrices                        0
//   ema        all, if ema > 0                             the initial weights
//
// After update number t the average moves towards the weights by 1 - min(ema, (1 + t) / (10 + t)),
// so that it leaves the initial weights behind faster than with ema alone (as in TensorFlow's
// ExponentialMovingAverage).
#pragma once

#include <string>
#include <string_view>

#include "src/nn/master_weights.h"

namespace trireme {

enum class OptimizerKind : std::uint8_t { adamw, sgd, muon };

// The name of the average in checkpoints.
inline constexpr std::string_view kAverageName = "optimizer.ema";

// Parses "adamw", "sgd" or "muon". Throws ConfigError for any other word.
OptimizerKind parse_optimizer(std::string_view name);

struct OptimizerOptions {
  float beta1 = 0.9F;  // for adamw, and for muon's other parameters, like the next two
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
  OptimizerKind kind = OptimizerKind::adamw;
  float momentum = 0.9F;  // for sgd and for muon's matrices, like `nesterov`
  bool nesterov = false;
  float ema = 0;            // decay of the average; 0 means that none is kept
  bool keep_zeros = false;  // whether weights of matrices that are 0 stay 0 (keep_zeros() below)
  // Throws ConfigError if a value is out of range.
  void validate() const;
  // Returns how many f32 numbers of state each element has. Elements of Muon's matrices have one
  // less.
  int states() const { return (kind == OptimizerKind::sgd ? 1 : 2) + (ema > 0 ? 1 : 0); }
  // Returns the elements of state for `held` elements of a store, which include all of Muon's
  // matrices.
  std::int64_t state_elements(const ParameterStore& store, std::int64_t held) const;
  // Returns the number of f32 elements in the workspace of a step.
  std::int64_t workspace(const ParameterStore& store) const;
};

struct OptimizerUpdate {
  std::int64_t step = 1;  // number of this update, from 1
  float lr = 0;
  float gradient_scale = 1;  // from gradient clipping and loss scaling
};

class Optimizer {
 public:
  // State and average start at zero. The masters must outlive the optimizer.
  Optimizer(MasterWeights& masters, const OptimizerOptions& options);

  // Sets the average, if there is one, to the current master weights.
  void start_average();
  // With options().keep_zeros, sets the gradients of those weights of matrices to 0 that are 0
  // themselves. If their state is 0, too, as it is from the start, the next step leaves weights and
  // state at 0. A later call would find the same weights, so that nothing else must be stored.
  // gradients: f32 [elements of the range].
  void keep_zeros(int range, const View& gradients) const;
  // Updates one range of the master weights, its working copies and its state. gradients: f32
  // [elements of the range].
  void step(int range, const ConstView& gradients, const OptimizerUpdate& update);

  const OptimizerOptions& options() const { return options_; }
  MasterWeights& masters() const { return masters_; }
  // States are numbered in [0, options().states()). state_name() is the name in checkpoints, such
  // as "optimizer.m", or empty if the parameter does not use the state. state() is the state, f32
  // [count], of elements [first, first + count) of a range, all of which must use it.
  std::string_view state_name(int state, const Parameter& parameter) const;
  View state(int state, int range, std::int64_t first, std::int64_t count) const;
  // The state of a whole range.
  View state(int state, int range) const {
    return this->state(state, range, 0, masters_.held(range).working_copies.count);
  }
  // Returns the number of elements in all states.
  std::int64_t state_elements() const;

 private:
  void step_of_muon(int range, ParameterId id, const ConstView& gradients,
                    const OptimizerUpdate& update);
  std::int64_t unused_before(int state, int range, std::int64_t first) const;
  void average(int range, const OptimizerUpdate& update) const;

  MasterWeights& masters_;
  OptimizerOptions options_;
  // Muon only: elements of its matrices before each parameter.
  std::vector<std::int64_t> matrices_before_;
  std::vector<std::vector<std::int64_t>> starts_;  // first element of each range, by state
  std::vector<Tensor> states_;                     // the average is the last
  Tensor workspace_;                               // muon only
};

}  // namespace trireme
