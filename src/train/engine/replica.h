// Replica: this rank's part of one model replica at work: runs the micro-batches of a step, or of
// an evaluation, through its slices of the model as the pipeline's schedule says. Owned by the
// training loop, used by its thread; what it is given outlives it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "io/data/loader.h"
#include "mpi/watch/flight_recorder.h"
#include "src/parallel/pipeline/pipeline_runner.h"
#include "src/parallel/tensor_ranks.h"
#include "src/train/engine/evaluate.h"
#include "src/train/engine/model_chunk.h"
#include "src/train/run/layout.h"

namespace trireme {

// What a rank has computed of a step, to be compared with another run of it.
struct MicroBatchBits {
  std::vector<double> losses;  // sum of the token losses of each of its micro-batches, at the last
                               // stage; zeros elsewhere
  std::vector<std::uint64_t> digests;  // of their gradients; none unless divergence.digests
};

class Replica {
 public:
  struct Parts {
    const RunConfig& config;
    const Layout& layout;
    const ModelChunks& chunks;  // of this rank
    Communicator& pp;
    TensorGroup& group;
    FlightRecorder& recorder;
    DeviceContext& context;
    SpanLog* spans = nullptr;  // of what is traced; null: nothing is
  };
  explicit Replica(Parts parts);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Forward and backward of the micro-batches of step `step`, whose numbers within the global batch
  // of `sequences` are given; the gradients go to the chunks' reducers. tokens gives them in that
  // order; it is not called at ranks that see no tokens.
  MicroBatchBits train(std::int64_t step, std::int64_t sequences,
                       const std::vector<std::int64_t>& micro_batches, const TokenSource& tokens);
  // The same losses of the next `count` micro-batches, of `batch` sequences each, forward only.
  void evaluate(const TokenSource& tokens, std::int64_t batch, std::int64_t count, double* losses);

  // Whether this rank's slices read tokens or targets.
  bool reads_tokens() const;
  // Of the last train(); and how long it waited for tokens.
  const PipelineRunner::Timings& timings() const { return timings_; }
  double data_wait_seconds() const { return data_wait_seconds_; }

 private:
  class Work;

  Shape activation_shape(std::int64_t batch) const;
  void schedule(std::int64_t micro_batches);

  Parts parts_;
  PipelineShape shape_;              // of the last step's schedule
  std::vector<PipelineStep> steps_;  // the schedule
  PipelineRunner::Timings timings_;
  double data_wait_seconds_ = 0;
};

}  // namespace trireme
