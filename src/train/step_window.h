// StepWindow holds sums over the steps since the last logged one, from which a line of metrics gets
// its averages. Owned by the training loop; its thread only.
#pragma once

#include "src/base/stopwatch.h"
#include "src/device/cuda_device.h"
#include "src/train/engine/train_step.h"
#include "src/train/report/metrics.h"

namespace trireme {

class StepWindow {
 public:
  void add(const StepResult& result);
  std::int64_t steps() const { return steps_; }
  std::int64_t sequences() const { return sequences_; }
  void add_checkpoint_stall(double milliseconds) { checkpoint_stall_ms_ += milliseconds; }
  // Sets the rates and the times per step. sequence: tokens per sequence.
  void describe(StepMetrics& metrics, std::int64_t sequence) const;
  // Sets what the host did with a GPU.
  void describe_device(StepMetrics& metrics) const;

 private:
  Stopwatch watch_;
  std::int64_t steps_ = 0;
  std::int64_t sequences_ = 0;
  double data_wait_ms_ = 0;
  double compute_ms_ = 0;
  double comm_exposed_ms_ = 0;
  double tensor_wait_ms_ = 0;
  double pipeline_wait_ms_ = 0;
  double checkpoint_stall_ms_ = 0;
  cuda::DeviceUse before_ = cuda::device_use();
};

}  // namespace trireme
