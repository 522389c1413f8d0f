// What a forward or backward pass runs with: passed down, never global.
#pragma once

#include <deque>
#include <functional>

#include "src/compute/device_context.h"
#include "src/nn/gradient_sink.h"
#include "src/nn/parameter.h"
#include "src/nn/parameter_residence.h"
#include "src/nn/tensor_group.h"

namespace trireme {

class KeyValueCache;
struct Run;

struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
};

// Weight gradients put off, in order. They keep the tensors that they need alive.
using WeightGradients = std::deque<std::function<void(Run&)>>;

struct Run {
  DeviceContext& context;
  ParameterStore& parameters;
  // Training only. Dropout is off without it.
  bool training = false;
  DropoutKey dropout{};
  std::int64_t first_sample = 0;  // of this micro-batch, within the step's global batch
  LossTerms loss_terms{};         // of training losses; evaluation takes the plain cross entropy
  // f64 [1]: where the last slice leaves the sum of the micro-batch's token losses.
  View loss{};
  // Where backward leaves gradients.
  GradientSink* gradients = nullptr;
  // If given, backward computes the gradients of activations alone, and puts those of weights off
  // to here: what backward_input leaves to backward_weight.
  WeightGradients* later = nullptr;
  // If given, they wait here for the next exchange between the ranks of the group, to be computed
  // while that is under way. Ignored with `later`.
  WeightGradients* waiting = nullptr;
  // Who brings parameters into memory before a layer runs; none: they are always there.
  ParameterResidence* residence = nullptr;
  // Ranks that hold the other parts of this one's layers; none: the layers are whole.
  TensorGroup* group = nullptr;
  // Between their branches the ranks of the group share out the rows of the stream, too
  // (Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022).
  bool sequence_parallel = false;
  // Of the micro-batch at work; set by the model.
  std::int64_t batch = 0;
  std::int64_t time = 0;
  // Decoding only: the tokens before this pass.
  KeyValueCache* cache = nullptr;

  const Kernels& kernels() const { return context.kernels(); }
  Stream& stream() const { return context.stream(); }
  Pool& pool() const { return context.activations(); }
  bool alone() const { return group == nullptr || group->size() == 1; }
  // Whether the stream here is a share of the rows: [1, B T / ranks, C].
  bool shares_rows() const { return sequence_parallel && !alone(); }
  // For a tensor that the group sums or gathers.
  Pool& shared_pool() { return alone() ? pool() : group->pool(); }

  bool puts_off_weights() const { return later != nullptr || waiting != nullptr; }
  // Runs `work`, which makes gradients of weights: now, or later.
  template <class Work>
  void weight_gradient(Work work) {
    if (puts_off_weights()) {
      (later != nullptr ? later : waiting)->emplace_back(std::move(work));
    } else {
      work(*this);
    }
  }
  // Computes the weight gradients that wait, but for the last `keep`.
  void work_off(std::size_t keep = 0) {
    while (waiting != nullptr && waiting->size() > keep) {
      const std::function<void(Run&)> work = std::move(waiting->front());
      waiting->pop_front();
      work(*this);
    }
  }
};

// One micro-batch of token sequences, in memory that kernels can read. Borrowed for the call.
struct MicroBatch {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  ConstView ids;      // i32 [B,T]
  ConstView targets;  // i32 [B,T]: the token that follows each id
};

}  // namespace trireme
