// Says which back end is compiled; the include path chooses this file or its namesake.
#pragma once

#include <cstdlib>
#include <string>

#include "src/device/cuda_device.h"
#include "src/device/sim/call.h"
#include "src/device/sim/cudnn_functions.h"
#include "src/device/sim/environment.h"
#include "src/device/sim/machine.h"

namespace trireme::cuda {

inline constexpr BackEnd kBackEnd = BackEnd::simulated;
// The simulated device has no driver. Tests name a stand-in for the driver's library.
inline std::string flavour_management_library() {
  const char* const library = std::getenv("TRIREME_SIM_NVML");
  return library == nullptr ? "" : library;
}

// Return why cuBLASLt and NCCL cannot be loaded; empty if they can.
inline std::string flavour_cublaslt_error() {
  return sim::environment().has_cublaslt ? "" : "the simulated device has none";
}
inline std::string flavour_nccl_error() {
  return sim::environment().nccl_version > 0 ? "" : "the simulated device has none";
}

// Returns a function of cuDNN; null if it cannot be had, and then says why.
inline void* flavour_cudnn_function(const char* name, std::string& why) {
  return sim::cudnn_function(name, why);
}

// Returns how often the calling thread has called a function of the runtime that waits for a
// device.
inline std::int64_t blocking_calls() { return sim::blocking_calls(); }

// Returns whether the bytes lie within one allocation of a device or one piece of pinned memory.
inline bool can_copy(const void* data, std::size_t bytes) { return sim::can_copy(data, bytes); }

}  // namespace trireme::cuda
