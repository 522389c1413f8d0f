// FlightGraphs computes one micro-batch at a time in one chunk of the model, by repeating recorded
// work (RecordedWork): graphs of a CUDA device, between which the host exchanges tensors and sums
// gradients. All memory that the recorded work uses is here: pools for activations, and fixed
// places for what differs between micro-batches, which begin() and pass() fill: tokens, the
// position of dropout, the input. The loss and the outputs are copied out.
//
// The first micro-batch is computed without a recording, to allocate memory, choose algorithms of
// products and let scratch memory grow; the second is recorded; later ones repeat the recording.
// It is made anew when the scale of the gradients or the place of a parameter has changed. On a
// counting device, nothing is recorded, but the memory is the same. Owned by MicroBatchGraphs; used
// by the engine's thread.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "src/parallel/recorded_calls.h"
#include "src/parallel/staged_gradients.h"
#include "src/train/engine/model_chunk.h"

namespace trireme {

class FlightGraphs {
 public:
  // What the parts refer to outlives this.
  struct Parts {
    ModelChunk& chunk;
    TensorGroup& group;
    DeviceContext& context;
    bool drops;  // whether the model has dropout
  };
  explicit FlightGraphs(const Parts& parts);
  FlightGraphs(const FlightGraphs&) = delete;
  FlightGraphs& operator=(const FlightGraphs&) = delete;

  // Begins a micro-batch. step, first_sample: the position of dropout. scale: of the gradients.
  void begin(const MicroBatch& micro_batch, std::uint32_t step, std::int64_t first_sample,
             float scale);
  bool is_busy() const { return busy_; }

  enum class Pass { forward, backward, weights };
  // Performs or repeats a pass of the micro-batch. input: what the pass gets, or empty; a copy of
  // it is passed to `compute`, which is called with a Run that has this object's memory, group,
  // residence and gradients. Returns a copy of what `compute` returned. is_last: the last pass of
  // this micro-batch.
  using Compute = std::function<Tensor(const MicroBatch&, Tensor input, Run&)>;
  Tensor pass(Pass pass, const Tensor& input, Run run, const Compute& compute, bool is_last);
  // Names where the gradients of this micro-batch go, before its first backward pass.
  void gradients_to(GradientLeaf& leaf) { gradients_.begin(leaf); }
  // f64 [1]: the loss, after the backward pass of the last chunk.
  ConstView loss() const { return loss_.view(); }
  // f64 [B]: the losses of the samples, if the run has asked for them.
  ConstView sample_losses() const { return sample_losses_.view(); }

  // Return the bytes that the pools have taken, and the nodes in all graphs.
  std::int64_t activation_bytes() const {
    return own_.activations().reserved_bytes() + own_.state().reserved_bytes();
  }
  std::int64_t exchanged_bytes() const { return own_.exchange().reserved_bytes(); }
  std::int64_t nodes() const;

 private:
  enum class Mode { plain, record, repeat };
  struct Recorded {
    RecordedWork work;
    Tensor input;  // its copies, at the same place for every micro-batch
    View output;   // where the pass leaves its result; empty if it has none
    Shape output_shape;
  };
  void place_tokens(const MicroBatch& micro_batch);
  void drop_recordings();

  Parts parts_;
  // Its state pool holds what must keep its address. If the other pools held it, a recording would
  // find less free memory there than the first micro-batch did.
  DeviceContext own_;
  GraphRecorder recorder_;
  RecordedGroup group_;
  RecordedResidence residence_;
  StagedGradients gradients_;
  Mode mode_ = Mode::plain;
  std::int64_t begun_ = 0;  // micro-batches so far
  bool busy_ = false;
  std::array<Recorded, 3> passes_;
  Tensor ids_;
  Tensor targets_;
  Tensor position_;  // u32 [2]
  Tensor loss_;
  Tensor sample_losses_;
  MicroBatch placed_;                // its views lie in ids_ and targets_
  float scale_ = 0;                  // with which the passes were recorded
  std::vector<const void*> places_;  // of the parameters then
};

}  // namespace trireme
