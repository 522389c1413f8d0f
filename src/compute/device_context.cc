#include "src/compute/device_context.h"

#include "src/compute/kernel_choice.h"

namespace trireme {

Device default_device() { return {DeviceKind::cpu, 0}; }

DeviceContext::DeviceContext(Device device, const Kernels& kernels, int threads,
                             MemorySource& exchange)
    : kernels_(kernels),
      stream_(device, threads),
      activations_(device),
      exchange_(device, exchange),
      state_(device),
      exchange_state_(device, exchange) {}

DeviceContext::DeviceContext(Device device, int threads)
    : DeviceContext(device, threads, memory_of(device)) {}

DeviceContext::DeviceContext(Device device, int threads, MemorySource& exchange)
    : DeviceContext(device, kernels_for(device), threads, exchange) {}

DeviceContext::DeviceContext(const Kernels& kernels, int threads, MemorySource& exchange)
    : DeviceContext({DeviceKind::cpu, 0}, kernels, threads, exchange) {}

}  // namespace trireme
