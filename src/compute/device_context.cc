#include "src/compute/device_context.h"

#include "src/compute/kernel_choice.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

// Returns null for devices whose work runs at once.
std::shared_ptr<StreamQueue> queue_of(Device device) {
  return device.kind == DeviceKind::cuda ? cuda::make_queue(device.index) : nullptr;
}

MemorySource& staging_of(Device device) {
  return device.kind == DeviceKind::cuda ? cuda::pinned_memory(device.index) : host_memory();
}

}  // namespace

DeviceContext::DeviceContext(Device device, const Kernels& kernels, int threads,
                             MemorySource& exchange)
    : kernels_(kernels),
      stream_(device, threads, queue_of(device)),
      activations_(device),
      exchange_(device, exchange),
      state_(device),
      exchange_state_(device, exchange),
      staging_(Device::cpu(), staging_of(device)) {}

DeviceContext::DeviceContext(Beside beside)
    : kernels_(beside.other.kernels_),
      stream_(beside.other.stream_),
      activations_(device(), beside.other.activations_.source()),
      exchange_(device(), beside.other.exchange_.source()),
      state_(device(), beside.other.state_.source()),
      exchange_state_(device(), beside.other.exchange_state_.source()),
      staging_(Device::cpu(), beside.other.staging_.source()) {}

DeviceContext::DeviceContext(Device device, int threads)
    : DeviceContext(device, threads, memory_of(device)) {}

DeviceContext::DeviceContext(Device device, int threads, MemorySource& exchange)
    : DeviceContext(device, kernels_for(device), threads, exchange) {}

DeviceContext::DeviceContext(const Kernels& kernels, int threads, MemorySource& exchange)
    : DeviceContext(Device::cpu(), kernels, threads, exchange) {}

}  // namespace trireme
