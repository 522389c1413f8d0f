#include "src/train/step_window.h"

namespace trireme {

void StepWindow::add(const StepResult& result) {
  ++steps_;
  sequences_ += result.sequences;
  data_wait_ms_ += result.data_wait_ms;
  compute_ms_ += result.compute_ms;
  comm_exposed_ms_ += result.comm_exposed_ms;
  tensor_wait_ms_ += result.tensor_wait_ms;
  pipeline_wait_ms_ += result.pipeline_wait_ms;
}

void StepWindow::describe(StepMetrics& metrics, std::int64_t sequence) const {
  const double elapsed = watch_.seconds();
  const auto steps = static_cast<double>(steps_);
  metrics.tokens_per_s = static_cast<double>(sequences_ * sequence) / elapsed;
  metrics.step_ms = 1e3 * elapsed / steps;
  metrics.data_wait_ms = data_wait_ms_ / steps;
  metrics.compute_ms = compute_ms_ / steps;
  metrics.comm_exposed_ms = comm_exposed_ms_ / steps;
  metrics.tensor_wait_ms = tensor_wait_ms_ / steps;
  metrics.pipeline_wait_ms = pipeline_wait_ms_ / steps;
  metrics.checkpoint_stall_ms = checkpoint_stall_ms_ / steps;
}

void StepWindow::describe_device(StepMetrics& metrics) const {
  const cuda::DeviceUse use = cuda::device_use();
  metrics.device_waits =
      static_cast<double>(use.waits - before_.waits) / static_cast<double>(steps_);
  metrics.device_allocations = use.allocations - before_.allocations;
  metrics.device_graphs =
      static_cast<double>(use.graphs - before_.graphs) / static_cast<double>(steps_);
}

}  // namespace trireme
