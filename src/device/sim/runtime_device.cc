// Devices, errors and launches of the runtime's interface.
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

#include "src/device/sim/block.h"
#include "src/device/sim/call.h"
#include "src/device/sim/environment.h"
#include "src/device/sim/machine.h"

namespace {

constexpr int kCudaVersion = 13000;  // of the runtime
constexpr int kProcessors = 4;
constexpr unsigned kMaxBlocksYZ = 65535;

// Converts a device's number in this process, which may see only some, to its number on the host.
int number_of(int device) { return sim::environment().visible[static_cast<std::size_t>(device)]; }

bool has_device(int device) { return device >= 0 && device < sim::machine().devices(); }

// Returns the most bytes of shared memory that a block may have on devices of this kind.
std::size_t most_shared_bytes() {
  const int capability = sim::environment().capability;
  return capability >= 90                       ? sim::kMaxSharedBytes
         : capability == 80 || capability == 87 ? std::size_t{163} << 10
                                                : std::size_t{99} << 10;
}

// Says whether the program holds code for the devices, as if nvcc had compiled it for
// __CUDA_ARCH_LIST__. Code for one compute capability runs on later ones of the same major version.
cudaError_t check_code() {
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    const int capability = architecture / 10;
    if (sim::environment().capability / 10 == capability / 10 &&
        sim::environment().capability >= capability) {
      return cudaSuccess;
    }
  }
  return cudaErrorNoKernelImageForDevice;
}

cudaError_t check_shape(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 blocks = config.gridDim;
  const dim3 threads = config.blockDim;
  const std::size_t count = std::size_t{threads.x} * threads.y * threads.z;
  const bool is_empty = blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || count == 0;
  const bool is_large = count > sim::kMaxThreads || threads.z > 64 || blocks.x > 0x7FFFFFFFu ||
                        blocks.y > kMaxBlocksYZ || blocks.z > kMaxBlocksYZ;
  const auto shared = static_cast<std::size_t>(sim::machine().kernel_shared_bytes(kernel));
  if (is_empty || is_large) {
    return cudaErrorInvalidConfiguration;
  }
  return config.dynamicSmemBytes > shared ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

namespace sim {

cudaError_t launch(const cudaLaunchConfig_t& config, Kernel kernel) {
  if (const cudaError_t error = begin_call("cudaLaunchKernelEx"); error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = check_code(); error != cudaSuccess) {
    return end_call(error);
  }
  if (const cudaError_t error = check_shape(config, kernel.function); error != cudaSuccess) {
    return end_call(error);
  }
  machine().check_loaded(kernel.function);
  const Grid grid{config.gridDim, config.blockDim, config.dynamicSmemBytes};
  return end_call(machine().enqueue(config.stream, [grid, kernel = std::move(kernel)] {
    {
      const std::lock_guard lock(machine().mutex);
      machine().open_memory();
    }
    run_grid(grid, kernel, machine().seed());
    return true;
  }));
}

cudaError_t set_kernel_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (const cudaError_t error = begin_call("cudaFuncSetAttribute"); error != cudaSuccess) {
    return error;
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > most_shared_bytes()) {
    return end_call(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(machine().mutex);
  machine().allowed_shared[function] = value;
  return cudaSuccess;
}

}  // namespace sim

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t error = sim::begin_call("cudaGetDeviceCount");
  *count = error == cudaSuccess ? sim::machine().devices() : 0;
  return error;
}
cudaError_t cudaGetDevice(int* device) {
  *device = sim::current_device();
  return sim::begin_call("cudaGetDevice");
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = sim::begin_call("cudaSetDevice"); error != cudaSuccess) {
    return error;
  }
  if (!has_device(device)) {
    return sim::end_call(cudaErrorInvalidDevice);
  }
  sim::current_device() = device;
  sim::machine().use(device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = sim::begin_call("cudaGetDeviceProperties"); error != cudaSuccess) {
    return error;
  }
  if (!has_device(device)) {
    return sim::end_call(cudaErrorInvalidDevice);
  }
  *properties = {};
  const auto number = static_cast<std::size_t>(number_of(device));
  const std::vector<std::string>& names = sim::environment().names;
  const std::string name =
      number < names.size() && !names[number].empty() ? names[number] : "simulated device";
  std::strncpy(properties->name, name.c_str(), sizeof properties->name - 1);
  std::memcpy(properties->uuid.bytes, "simulated device", 16);  // as uuid_text()
  properties->uuid.bytes[15] = static_cast<char>(number);
  properties->totalGlobalMem = sim::machine().memory(device).bytes();
  properties->sharedMemPerBlock = sim::kDefaultSharedBytes;
  properties->sharedMemPerBlockOptin = most_shared_bytes();
  properties->sharedMemPerMultiprocessor = most_shared_bytes() + 1024;
  properties->warpSize = sim::kWarpSize;
  properties->maxThreadsPerBlock = static_cast<int>(sim::kMaxThreads);
  properties->major = sim::environment().capability / 10;
  properties->minor = sim::environment().capability % 10;
  properties->multiProcessorCount = kProcessors;
  properties->l2CacheSize = 1 << 20;
  properties->memoryBusWidth = 64;
  properties->ECCEnabled = 1;
  properties->pciBusID = number_of(device) + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) {
    return error;
  }
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrIntegrated:
      *value = properties.integrated;
      return cudaSuccess;
    case cudaDevAttrEccEnabled:
      *value = properties.ECCEnabled;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return cudaSuccess;
  }
  return sim::end_call(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (const cudaError_t error = sim::begin_call("cudaDeviceGetPCIBusId"); error != cudaSuccess) {
    return error;
  }
  const int length = std::snprintf(text, static_cast<std::size_t>(bytes), "0000:%02x:00.0",
                                   has_device(device) ? number_of(device) + 1 : 0);
  return sim::end_call(has_device(device) && length < bytes ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = has_device(device) && has_device(peer) && device != peer ? 1 : 0;
  return sim::begin_call("cudaDeviceCanAccessPeer");
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (const cudaError_t error = sim::begin_call("cudaDeviceEnablePeerAccess");
      error != cudaSuccess) {
    return error;
  }
  return sim::end_call(has_device(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return sim::begin_call("cudaDeviceGetStreamPriorityRange");
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = sim::environment().driver_version;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (const cudaError_t error = sim::begin_call("cudaFuncGetAttributes"); error != cudaSuccess) {
    return error;
  }
  *attributes = {sim::machine().kernel_shared_bytes(kernel)};
  sim::machine().load(kernel);
  return sim::end_call(check_code());
}

cudaError_t cudaGetLastError() { return sim::take_last_error(); }
cudaError_t cudaPeekAtLastError() { return sim::peek_last_error(); }
}
