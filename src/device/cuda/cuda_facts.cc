#include <algorithm>
#include <array>
#include <cstdlib>

#include <cuda_flavour.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_libraries.h"
#include "src/device/cuda/device_code.h"
#include "src/device/cuda_device.h"
#include "src/device/mps_folder.h"

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

// Explains why no device can be used if the error itself does not.
std::string reason_text(cudaError_t error) {
  const CudaVersions versions = cuda_versions();
  std::string text = cudaGetErrorString(error);
  if (versions.driver == 0) {
    text +=
        ": no NVIDIA driver is loaded on this host (is the module nvidia loaded, does the dynamic "
        "linker find libcuda.so.1, and may this job use the devices /dev/nvidia*?)";
  } else if (versions.driver < versions.runtime) {
    text += fmt::format(
        ": the driver supports CUDA {}, but this program needs {}: update the driver, or build "
        "with an older CUDA",
        cuda_version_text(versions.driver), cuda_version_text(versions.runtime));
  } else if (error == cudaErrorSystemDriverMismatch) {
    text +=
        ": the driver's library and its kernel module are of different versions, as after an "
        "update: restart the node, or reload the module nvidia";
  } else if (error == cudaErrorSystemNotReady) {
    text +=
        ": the GPUs are not connected yet: on nodes with NVSwitch, start the service "
        "nvidia-fabricmanager in the version of the driver";
  } else if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    text += fmt::format(": CUDA_VISIBLE_DEVICES is '{}'", visible);
  } else {
    text += ": nvidia-smi -L shows the GPUs of this host";
  }
  return text;
}

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

// Refuses a device for which this program holds no code.
void check_code(int index, int capability) {
  const cudaError_t error = find_code();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction) {
    cuda_check(error, "cudaFuncGetAttributes");
    return;
  }
  (void)cudaGetLastError();  // the next check must not see this error again
  std::vector<std::string> built_for;
  for (const int each : code_capabilities()) {
    built_for.push_back(capability_text(each));
  }
  constexpr int kLeast = 80;  // has cp.async and mma.sync for bf16
  throw ConfigError(fmt::format(
      "{} has compute capability {}, but this program was built for {}: {}, or compute on the CPU "
      "(train.device=cpu, --device cpu)",
      describe_device(index), capability_text(capability), fmt::join(built_for, " and "),
      capability < kLeast
          ? "use GPUs of 8.0 or later, which its kernels need"
          : fmt::format("build it with -DCMAKE_CUDA_ARCHITECTURES={}-real", capability)));
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaVersions cuda_versions() {
  CudaVersions versions;
  (void)cudaRuntimeGetVersion(&versions.runtime);
  (void)cudaDriverGetVersion(&versions.driver);
  return versions;
}

std::string management_library() { return flavour_management_library(); }

BackEnd back_end() { return kBackEnd; }

std::string back_end_text() {
  return kBackEnd == BackEnd::simulated ? "simulated CUDA device"
                                        : "CUDA " + cuda_version_text(cuda_versions().runtime);
}

void ask_for_queues() {
  if (mps_folder().empty()) {
    (void)::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  }
}

DeviceSearch find_devices() {
  DeviceSearch found;
  const cudaError_t error = cudaGetDeviceCount(&found.count);
  if (error == cudaSuccess && found.count > 0) {
    const std::string trouble = library_trouble();
    return trouble.empty() ? found : DeviceSearch{0, DeviceSearch::Trouble::library, trouble};
  }
  (void)cudaGetLastError();
  const bool is_absent =
      error == cudaSuccess || error == cudaErrorNoDevice || cuda_versions().driver == 0;
  return {0,
          is_absent                              ? DeviceSearch::Trouble::absent
          : error == cudaErrorInsufficientDriver ? DeviceSearch::Trouble::old_driver
                                                 : DeviceSearch::Trouble::fault,
          reason_text(error == cudaSuccess ? cudaErrorNoDevice : error)};
}

int device_count() { return find_devices().count; }

DeviceFacts device_identity(int index) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  DeviceFacts facts;
  facts.name = properties.name;
  facts.uuid = uuid_text(properties.uuid);
  facts.bus = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                          properties.pciDeviceID);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.compute_capability = 10 * properties.major + properties.minor;
  facts.bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  remember_device(index, facts);
  return facts;
}

DeviceFacts device_facts(int index) {
  DeviceFacts facts = device_identity(index);
  std::size_t free_bytes = 0;
  std::size_t bytes = 0;
  use_device(index);
  cuda_check(cudaMemGetInfo(&free_bytes, &bytes), "cudaMemGetInfo");
  facts.bytes = static_cast<std::int64_t>(bytes);
  facts.free_bytes = static_cast<std::int64_t>(free_bytes);
  check_code(index, facts.compute_capability);
  return facts;
}

bool can_access_peer(int device, int peer) {
  int can = 0;
  cuda_check(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer");
  return can != 0;
}

}  // namespace trireme::cuda
