// ToyStage is a StageWork that computes nothing: each element that it returns encodes which part of
// which micro-batch it is, and each element that it is given must do so, too. It overwrites its
// inputs, as real stages may.
#pragma once

#include <functional>
#include <vector>

#include "mpi/communicator.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/parallel/pipeline/stage_work.h"

namespace trireme {

class ToyStage : public StageWork {
 public:
  // A Hook is called at the start of every step and may throw.
  using Hook = std::function<void(const PipelineStep&)>;
  ToyStage(Pool& pool, const PipelineShape& shape, int stage, const Shape& activation,
           Hook hook = {});

  Tensor forward(int chunk, std::int64_t micro_batch, Tensor input) override;
  Tensor backward(int chunk, std::int64_t micro_batch, Tensor doutput) override;
  Tensor backward_input(int chunk, std::int64_t micro_batch, Tensor doutput) override;
  void backward_weight(int chunk, std::int64_t micro_batch) override;
  Tensor embedding_gradient(std::int64_t micro_batch) override;
  void tie(std::int64_t micro_batch, Tensor d) override;

  const std::vector<PipelineStep>& steps() const { return steps_; }
  // Returns the number of elements with wrong values.
  std::int64_t wrong() const { return wrong_; }
  std::int64_t embedding_gradients() const { return embedding_gradients_; }

 private:
  void enter(PipelineStep::Kind kind, int chunk, std::int64_t micro_batch);
  Tensor gradient(int chunk, std::int64_t micro_batch, const Tensor& doutput);
  Tensor make(int kind, int virtual_stage, std::int64_t micro_batch);
  // Expects an empty tensor if kind < 0.
  void check_and_spoil(const Tensor& given, int kind, int virtual_stage, std::int64_t micro_batch);

  Pool& pool_;
  PipelineShape shape_;
  int stage_;
  Shape activation_;
  Hook hook_;
  std::vector<PipelineStep> steps_;
  std::int64_t wrong_ = 0;
  std::int64_t embedding_gradients_ = 0;
};

// Runs the schedule `runs` times as one rank of a pipeline over the whole group; every second time
// in the order of transfers for a device. The test fails if steps come in another order
// or tensors have wrong elements.
void run_toy(Communicator& pp, PipelineSchedule schedule, const PipelineShape& shape,
             const Shape& activation, int runs = 2);

}  // namespace trireme
