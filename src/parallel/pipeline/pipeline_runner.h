// PipelineRunner: runs one rank's part of a schedule: calls its StageWork step by step and moves
// activations and gradients between the stages while it computes. Receives are posted ahead of the
// step that needs them; sends are not waited for before the end of the run, and hold their tensors
// until they have left: stages that send to each other at the same time don't wait for each other.
// Owned by the training loop, used by its thread alone.
#pragma once

#include <span>
#include <vector>

#include "mpi/communicator.h"
#include "src/compute/device_context.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/parallel/pipeline/simulation.h"
#include "src/parallel/pipeline/stage_work.h"
#include "src/trace/span_log.h"

namespace trireme {

// What a tag can be, of Communicator::send().
inline constexpr int kPipelineTags = 16383;

class PipelineRunner {
 public:
  struct Timings {               // of the last run
    double seconds = 0;          // all of it
    double compute_seconds = 0;  // inside StageWork
    double wait_seconds = 0;     // for other stages: the bubble, and what transfers add to it
    // The steps as they ran, in seconds since the run's start; what lies between two was waiting.
    std::vector<TimedStep> timeline;
  };

  // All of it outlives the runner.
  struct Tools {
    Communicator& pp;          // the stages, in their order
    DeviceContext& context;    // its exchange memory should be that of `pp`
    SpanLog* spans = nullptr;  // where steps and waiting are noted; null: nowhere
  };
  // activation: [B,T,C] of every tensor that moves. shape.micro_batches is not looked at.
  PipelineRunner(const Tools& tools, const PipelineShape& shape, const Shape& activation,
                 DType dtype);

  // All ranks run the same schedule at the same time, each its own stage's steps. Everything sent
  // has left before later work on the stream. An error passes through, and fails the group's
  // operations.
  void run(std::span<const PipelineStep> steps, StageWork& work);

  const Timings& timings() const { return timings_; }

 private:
  class Run;

  Tools tools_;
  PipelineShape shape_;
  Shape activation_;
  DType dtype_;
  Timings timings_;
};

}  // namespace trireme
