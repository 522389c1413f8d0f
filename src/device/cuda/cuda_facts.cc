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

// Explains why the driver shows no device.
std::string absence_text() {
  constexpr const char* kList = "nvidia-smi -L lists the GPUs of this host";
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    return fmt::format(
        "the driver finds no GPU that this job may use: {}, and `ls /dev/nvidia*` what the job may "
        "open; in a Slurm job, ask for GPUs (--gpus-per-node)",
        kList);
  }
  return fmt::format(
      "CUDA_VISIBLE_DEVICES is '{}', {}: {}; unset the variable, or give it numbers "
      "or UUIDs from that list",
      visible,
      *visible == '\0' ? "which hides all GPUs"
                       : "but its first entry names no GPU that this job may use",
      kList);
}

// Explains why no device can be used. CUDA reports a driver that is missing like one that is old,
// so its words stand only where they are the whole cause.
std::string reason_text(cudaError_t error) {
  const CudaVersions versions = cuda_versions();
  if (versions.driver == 0) {
    return "no NVIDIA driver is loaded on this host (is the module nvidia loaded, does the dynamic "
           "linker find libcuda.so.1, and may this job use the devices /dev/nvidia*?)";
  }
  if (versions.driver < versions.runtime) {
    return fmt::format(
        "the driver supports CUDA {}, but this program needs {}: update the driver, or build with "
        "an older CUDA",
        cuda_version_text(versions.driver), cuda_version_text(versions.runtime));
  }
  const std::string text = cudaGetErrorString(error);
  switch (error) {
    case cudaErrorNoDevice:
      return fmt::format("{}: {}", text, absence_text());
    case cudaErrorSystemDriverMismatch:
      return text +
             ": the driver's library and its kernel module are of different versions, as after an "
             "update: restart the node, or reload the module nvidia";
    case cudaErrorSystemNotReady:
      return text +
             ": the GPUs are not connected yet: on nodes with NVSwitch, start the service "
             "nvidia-fabricmanager in the version of the driver";
    default:
      return fmt::format(
          "{} ({}): look at nvidia-smi and at XIDs in the kernel's log (dmesg); if the GPU is "
          "broken, drain the node",
          text, cudaGetErrorName(error));
  }
}

// Checks a call that makes this process a user of the device.
void check_begin(int index, cudaError_t error, const char* call) {
  if (error == cudaErrorMemoryAllocation) {
    throw_no_room_on(index, error, call);
  }
  cuda_check(error, call);
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
  check_begin(index, cudaSetDevice(index), "cudaSetDevice");
  check_begin(index, cudaMemGetInfo(&free_bytes, &bytes), "cudaMemGetInfo");
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
