#include <algorithm>
#include <array>

#include <cuda_flavour.h>

#include "src/base/error.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"

namespace trireme::cuda {
namespace {

// Returns a UUID as nvidia-smi prints it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

BackEnd back_end() { return kBackEnd; }

std::string back_end_text() {
  int version = 0;
  (void)cudaRuntimeGetVersion(&version);
  return kBackEnd == BackEnd::simulated ? "simulated CUDA device" : "CUDA " + version_text(version);
}

int device_count(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) {
    return count;
  }
  (void)cudaGetLastError();
  if (why == nullptr) {
    return 0;
  }
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  *why = cudaGetErrorString(error);
  if (driver == 0) {
    *why += ": no NVIDIA driver is loaded on this host";
  } else if (driver < runtime) {
    *why += fmt::format(": the driver supports CUDA {}, but this program needs {}",
                        version_text(driver), version_text(runtime));
  }
  return 0;
}

DeviceFacts device_facts(int index) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  DeviceFacts facts;
  facts.name = properties.name;
  facts.uuid = uuid_text(properties.uuid);
  facts.bus = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                          properties.pciDeviceID);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.compute_capability = 10 * properties.major + properties.minor;
  std::size_t free_bytes = 0;
  std::size_t bytes = 0;
  cuda_check(cudaSetDevice(index), "cudaSetDevice");
  cuda_check(cudaMemGetInfo(&free_bytes, &bytes), "cudaMemGetInfo");
  facts.bytes = static_cast<std::int64_t>(bytes);
  facts.free_bytes = static_cast<std::int64_t>(free_bytes);
  return facts;
}

}  // namespace trireme::cuda
