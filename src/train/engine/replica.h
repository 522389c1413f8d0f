// Replica is this rank's part of one model replica: it runs the micro-batches of a step, or of an
// evaluation, through the rank's slices of the model in the order of the pipeline's schedule. Owned
// by Engine and used by its thread; its parts outlive it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "io/data/loader.h"
#include "mpi/watch/flight_recorder.h"
#include "src/parallel/pipeline/pipeline_runner.h"
#include "src/parallel/tensor_ranks.h"
#include "src/train/engine/evaluate.h"
#include "src/train/engine/fp8_scaling.h"
#include "src/train/engine/micro_batch_graphs.h"
#include "src/train/engine/micro_batch_output.h"
#include "src/train/engine/model_chunk.h"
#include "src/train/engine/teacher.h"
#include "src/train/run/layout.h"

namespace trireme {

class Replica {
 public:
  struct Parts {
    const RunConfig& config;
    const Layout& layout;
    const ModelChunks& chunks;  // of this rank
    const Fp8Scaling& fp8;
    const Teacher* teacher;  // null without distillation, and on ranks without the head
    Communicator& pp;
    TensorGroup& group;
    FlightRecorder& recorder;
    DeviceContext& context;
    SpanLog* spans = nullptr;  // log for traced steps; null for none
  };
  explicit Replica(Parts parts);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Runs forward and backward of this rank's micro-batches in step `step`, which have the given
  // numbers within the global batch of `sequences`. The gradients, of loss_scale times the loss, go
  // to the chunks' reducers.
  // `tokens` returns the micro-batches in that order; it is not called on ranks that read no
  // tokens. All ranks of the replica call it together.
  // Does not wait for the device.
  MicroBatchOutput train(std::int64_t step, std::int64_t sequences, double loss_scale,
                         const std::vector<std::int64_t>& micro_batches, const TokenSource& tokens);
  // Computes the losses f64 [count] of the next `count` micro-batches, of `batch` sequences each,
  // forward only. They stay zero on ranks without the head.
  void evaluate(const TokenSource& tokens, std::int64_t batch, std::int64_t count, double* losses);

  // Returns whether this rank's slices read tokens or targets, or need to know the documents.
  bool reads_tokens() const;
  // Return the timings of the last train(), and how long it waited for tokens.
  const PipelineRunner::Timings& timings() const { return timings_; }
  double data_wait_seconds() const { return data_wait_seconds_; }
  // Returns what repeats the micro-batches of steps; null if they are computed anew each time.
  const MicroBatchGraphs* graphs() const { return graphs_.get(); }

 private:
  class Work;

  Shape activation_shape(std::int64_t batch) const;
  void schedule(std::int64_t micro_batches);
  void make_steps();

  Parts parts_;
  std::unique_ptr<MicroBatchGraphs> graphs_;
  PipelineShape shape_;                   // of the schedule in steps_
  PipelineSteps steps_;                   // the schedule of all stages
  std::unique_ptr<TransferOrder> order_;  // null on the CPU
  PipelineRunner::Timings timings_;
  double data_wait_seconds_ = 0;
};

}  // namespace trireme
