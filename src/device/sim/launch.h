// The launch of kernels on the simulated device, without their types.
#pragma once

#include <memory>

#include <driver_types.h>

namespace sim {

// Executes one thread of a kernel.
using ThreadBody = void (*)(const void* arguments);

struct Kernel {
  const void* function = nullptr;
  ThreadBody body = nullptr;
  std::shared_ptr<const void> arguments = nullptr;
};

// Puts a grid on config.stream.
cudaError_t launch(const cudaLaunchConfig_t& config, Kernel kernel);

cudaError_t set_kernel_attribute(const void* function, cudaFuncAttribute attribute, int value);

}  // namespace sim
