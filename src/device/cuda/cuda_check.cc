#include "src/device/cuda/cuda_check.h"

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme::cuda {

void throw_cuda_error(cudaError_t error, const char* call) {
  int device = -1;
  (void)cudaGetDevice(&device);
  (void)cudaGetLastError();  // the next check must not see this error again
  throw DeviceError(fmt::format("{} failed on CUDA device {}: {} ({})", call, device,
                                cudaGetErrorString(error), cudaGetErrorName(error)));
}

void throw_out_of_device_memory(std::int64_t bytes) {
  int device = 0;
  (void)cudaGetDevice(&device);
  (void)cudaGetLastError();  // the next check must not see this error again
  const DeviceFacts facts = device_facts(device);
  throw ResourceError(fmt::format(
      "out of memory on CUDA device {} ({}): {} more are needed, but of its {} only {} are free; "
      "use a smaller micro-batch or model, train.recompute or parallel.zero, or end the processes "
      "that use the device",
      device, facts.name, format_bytes(bytes), format_bytes(facts.bytes),
      format_bytes(facts.free_bytes)));
}

}  // namespace trireme::cuda
