// PipelineRunner runs one rank's part of a schedule: it calls StageWork step by step and transfers
// activations and gradients between the stages meanwhile. Receives are posted ahead of the step
// that needs them. A send holds its tensor until that has left, and is waited for only where it is
// known to have arrived, or at the end of the run, so that stages that send to each other at the
// same time do not deadlock. Owned by the training loop and used by its thread alone.
#pragma once

#include <span>
#include <vector>

#include "mpi/communicator.h"
#include "src/compute/device_context.h"
#include "src/compute/stream_seconds.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/parallel/pipeline/simulation.h"
#include "src/parallel/pipeline/stage_work.h"
#include "src/parallel/pipeline/transfer_order.h"
#include "src/trace/span_log.h"

namespace trireme {

class PipelineRunner {
 public:
  struct Timings {               // of the last run; all but `wait` by the host's clock
    double seconds = 0;          // total time
    double compute_seconds = 0;  // inside StageWork
    StreamSeconds wait;          // for other stages: the bubble, plus what transfers add
    // The steps as they ran, in seconds since the run's start. The gaps between steps are waiting.
    std::vector<TimedStep> timeline;
  };

  // Everything that the tools refer to outlives the runner.
  struct Tools {
    Communicator& pp;          // the stages, in their order
    DeviceContext& context;    // its exchange memory should be that of `pp`
    SpanLog* spans = nullptr;  // log for steps and waiting; null for none
  };
  // activation: the shape [B,T,C] of all tensors that are transferred. shape.micro_batches is
  // ignored.
  PipelineRunner(const Tools& tools, const PipelineShape& shape, const Shape& activation,
                 DType dtype);

  // Runs this rank's steps; all ranks call it with the same schedule at the same time. Sends are
  // complete before later work on the stream. An error passes through, and fails the group's
  // operations. order: for work that is queued on a device, so that receives keep nothing from
  // starting that they need, and tensors are freed at the same steps whatever the timing, even if
  // the host is far ahead of the device. If null, receives are posted earlier, and each tensor is
  // freed as soon as the host finds that it has left.
  void run(std::span<const PipelineStep> steps, StageWork& work,
           const TransferOrder* order = nullptr);

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
