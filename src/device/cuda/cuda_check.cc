#include "src/device/cuda/cuda_check.h"

#include <map>
#include <mutex>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/units.h"

namespace trireme::cuda {
namespace {

struct KnownDevices {
  std::mutex mutex;
  std::map<int, DeviceFacts> facts;
};

KnownDevices& known_devices() {
  static KnownDevices known;
  return known;
}

// Says what to do about an error of a device, where that is known.
const char* advice_for(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
      return ": its memory has an uncorrectable error: drain the node and reset the GPU";
    case cudaErrorNvlinkUncorrectable:
      return ": an NVLink has failed: drain the node, and check its links (nvidia-smi nvlink -e)";
    case cudaErrorDevicesUnavailable:
      return ": another process has it exclusively, or its compute mode prohibits computing "
             "(nvidia-smi shows both): end that process, or set the compute mode to default "
             "(nvidia-smi -c 0)";
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorUnknown:
      return ": look for XIDs of this device in the kernel's log (dmesg)";
    default:
      return "";
  }
}

}  // namespace

void remember_device(int index, const DeviceFacts& facts) {
  KnownDevices& known = known_devices();
  const std::lock_guard lock(known.mutex);
  known.facts[index] = facts;
}

std::string describe_device(int index) {
  KnownDevices& known = known_devices();
  const std::lock_guard lock(known.mutex);
  const auto found = known.facts.find(index);
  const std::string host = host_name();
  return found == known.facts.end()
             ? fmt::format("CUDA device {} on {}", index, host)
             : fmt::format("CUDA device {} ({}, {}, {}) on {}", index, found->second.name,
                           found->second.uuid, found->second.bus, host);
}

void throw_cuda_error(cudaError_t error, const char* call) {
  throw_failure(error, fmt::format("{} failed", call));
}

void throw_failure(cudaError_t error, const std::string& failed) {
  int device = -1;
  (void)cudaGetDevice(&device);
  (void)cudaGetLastError();  // the next check must not see this error again
  if (error == cudaErrorMemoryAllocation) {
    throw_out_of_memory_in(fmt::format("{} ({})", failed, cudaGetErrorName(error)));
  }
  throw DeviceError(fmt::format("{} on {}: {} ({}){}", failed, describe_device(device),
                                cudaGetErrorString(error), cudaGetErrorName(error),
                                advice_for(error)));
}

void throw_out_of_memory_in(const std::string& what) {
  int device = -1;
  (void)cudaGetDevice(&device);
  throw ResourceError(fmt::format(
      "out of memory on {}: {}; use a smaller batch or model, or end the processes that "
      "use the device",
      describe_device(device), what));
}

void throw_no_room_on(int index, cudaError_t error, const char* call) {
  (void)cudaGetLastError();
  throw ResourceError(fmt::format(
      "out of memory on {}: it has too little left for this process to begin to use it "
      "({}: {}): end the processes that use it (nvidia-smi lists them), or take another "
      "device",
      describe_device(index), call, cudaGetErrorName(error)));
}

void throw_out_of_device_memory(std::int64_t bytes) {
  int device = 0;
  (void)cudaGetDevice(&device);
  (void)cudaGetLastError();  // the next check must not see this error again
  const DeviceFacts facts = device_facts(device);
  throw ResourceError(fmt::format(
      "out of memory on {}: {} more are needed, but of its {} only {} are free; use a smaller "
      "batch or model, or end the processes that use the device",
      describe_device(device), format_bytes(bytes), format_bytes(facts.bytes),
      format_bytes(facts.free_bytes)));
}

void throw_out_of_pinned_memory(std::int64_t bytes) {
  (void)cudaGetLastError();
  throw ResourceError(fmt::format(
      "out of pinned memory: {} more of the host's memory are needed for copies to and from the "
      "device; raise the job's memory or its limit on locked memory (ulimit -l)",
      format_bytes(bytes)));
}

}  // namespace trireme::cuda
