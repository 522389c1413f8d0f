#include "src/device/sim/call.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "src/device/sim/environment.h"
#include "src/device/sim/fault.h"
#include "src/device/sim/machine.h"

namespace sim {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local std::int64_t blocking = 0;

constexpr std::array<std::string_view, 6> kBlocking = {"cudaDeviceSynchronize",
                                                       "cudaStreamSynchronize",
                                                       "cudaEventSynchronize",
                                                       "cudaMemcpy",
                                                       "cudaFree",
                                                       "cudaFreeHost"};

// These can be called without making the process a user of a device.
constexpr std::array<std::string_view, 6> kOfNoDevice = {
    "cudaGetDeviceCount",      "cudaGetDevice",         "cudaSetDevice",
    "cudaGetDeviceProperties", "cudaDeviceGetPCIBusId", "cudaDeviceCanAccessPeer"};

// CUDA would make a context on the thread's device, which takes memory there, and fails if another
// process has the device exclusively.
cudaError_t enter_device(std::string_view name) {
  if (std::find(kOfNoDevice.begin(), kOfNoDevice.end(), name) != kOfNoDevice.end() ||
      machine().may_use(current_device())) {
    return cudaSuccess;
  }
  std::fprintf(stderr, "simulated device: %s by a thread without cudaSetDevice()\n", name.data());
  return cudaErrorDevicesUnavailable;
}

}  // namespace

bool is_survivable(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return false;
    default:
      return true;
  }
}

std::int64_t blocking_calls() { return blocking; }

cudaError_t begin_call(const char* name) {
  if (std::find(kBlocking.begin(), kBlocking.end(), name) != kBlocking.end()) {
    ++blocking;
  }
  if (const Fault fault = take_fault(name); fault.error != 0) {
    const auto error = static_cast<cudaError_t>(fault.error);
    if (fault.later) {
      next_failure() = error;
      return cudaSuccess;
    }
    if (!is_survivable(error)) {
      machine().fail(error);
    }
    return end_call(error);
  }
  constexpr int kOldestDriver = 13000;  // the runtime refuses older ones
  const cudaError_t error = environment().driver_version < kOldestDriver
                                ? cudaErrorInsufficientDriver
                            : machine().devices() == 0 ? cudaErrorNoDevice
                                                       : machine().error();
  return end_call(error == cudaSuccess ? enter_device(name) : error);
}

cudaError_t end_call(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    last_error = error;
  }
  return error;
}

cudaError_t take_last_error() { return std::exchange(last_error, machine().error()); }
cudaError_t peek_last_error() { return last_error; }

}  // namespace sim
