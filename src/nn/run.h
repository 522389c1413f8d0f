// Run holds everything that a forward or backward pass uses. It is passed down, never global, and
// refers to objects that the caller owns. One thread.
#pragma once

#include <deque>
#include <functional>

#include "src/compute/device_context.h"
#include "src/nn/gradient_sink.h"
#include "src/nn/parameter.h"
#include "src/nn/parameter_residence.h"
#include "src/nn/tensor_group.h"
#include "src/tensor/document_range.h"

namespace trireme {

class Fp8Products;
class KeyValueCache;
class PackedWeights;
struct Teaching;
struct Run;

struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
};

// WeightGradients are functions that compute weight gradients that were put off, in order. They
// keep the tensors that they need alive.
using WeightGradients = std::deque<std::function<void(Run&)>>;

struct Run {
  DeviceContext& context;
  ParameterStore& parameters;
  // Training only; without it, dropout is off.
  bool training = false;
  DropoutKey dropout{};
  std::int64_t first_sample = 0;  // number of the micro-batch's first sample in the global batch
  // u32 [2] in memory that kernels can read: step and first sample, which then replace the two
  // above. Empty unless the pass is recorded to be repeated with others.
  ConstView dropout_position{};
  const std::uint32_t* position() const {
    return static_cast<const std::uint32_t*>(dropout_position.data);
  }
  LossTerms loss_terms{};  // for training; evaluation uses the plain cross entropy
  // f64 [1], to which the last slice writes the sum of the micro-batch's token losses.
  View loss{};
  // f64 [B], to which the last slice writes the sum of each sample's token losses in training; may
  // be empty.
  View sample_losses{};
  // Training only: the model from whose probabilities the last slice learns, too; null for none.
  const Teaching* teaching = nullptr;
  // f64 [2], to which the last slice then writes the sums of the token's cross entropies and of
  // their divergences from the teacher.
  View taught{};
  // Receives the gradients; needed for backward only.
  GradientSink* gradients = nullptr;
  // If given, backward computes the gradients of activations alone and puts off those of weights to
  // this queue, as the zero-bubble schedule requires.
  WeightGradients* later = nullptr;
  // If given, weight gradients wait here for the next exchange between the ranks of the group, and
  // are computed during it. Ignored if `later` is given.
  WeightGradients* waiting = nullptr;
  // Brings parameters into memory before a layer runs; null if they are always there.
  ParameterResidence* residence = nullptr;
  // The ranks that hold the other parts of this rank's layers; null if the layers are whole.
  TensorGroup* group = nullptr;
  // Whether the ranks of the group also share the rows of the stream, between their branches
  // (Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022).
  bool sequence_parallel = false;
  // The shape of the current micro-batch; set by the model.
  std::int64_t batch = 0;
  std::int64_t time = 0;
  // The documents of the current micro-batch, which attention does not cross and in which positions
  // start anew; null if each sample is one. Set by the model.
  DocumentRanges documents = {};
  // Lets the products of the blocks' linear layers take numbers of 8 bits; null for none.
  const Fp8Products* fp8 = nullptr;
  // Without training only: matrices of 8 or 4 bits, which linear layers use; null for none.
  const PackedWeights* packed = nullptr;
  // Decoding only: the keys and values of the tokens before this pass.
  KeyValueCache* cache = nullptr;

  const Kernels& kernels() const { return context.kernels(); }
  Stream& stream() const { return context.stream(); }
  Pool& pool() const { return context.activations(); }
  bool alone() const { return group == nullptr || group->size() == 1; }
  // Returns whether the stream on this rank is a share of the rows: [1, B T / ranks, C].
  bool shares_rows() const { return sequence_parallel && !alone(); }
  // Returns the pool for tensors that the group sums or gathers.
  Pool& shared_pool() { return alone() ? pool() : group->pool(); }

  bool puts_off_weights() const { return later != nullptr || waiting != nullptr; }
  // Runs `work`, which computes gradients of weights, either now or later.
  template <class Work>
  void weight_gradient(Work work) {
    if (puts_off_weights()) {
      (later != nullptr ? later : waiting)->emplace_back(std::move(work));
    } else {
      work(*this);
    }
  }
  // Computes the weight gradients in `waiting`, except the last `keep`.
  void work_off(std::size_t keep = 0) {
    while (waiting != nullptr && waiting->size() > keep) {
      const std::function<void(Run&)> work = std::move(waiting->front());
      waiting->pop_front();
      work(*this);
    }
  }
};

// MicroBatch is one micro-batch of token sequences, in memory that kernels can read. The caller
// owns that memory and keeps it alive during the call.
struct MicroBatch {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  ConstView ids;                  // i32 [B,T]
  ConstView targets;              // i32 [B,T]: the token that follows each id, or kIgnoredTarget
  DocumentRanges documents = {};  // in memory of the host
};

}  // namespace trireme
