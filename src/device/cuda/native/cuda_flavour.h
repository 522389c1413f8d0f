// Says which back end is compiled; the include path chooses this file or its namesake.
#pragma once

#include <string>

#include <dlfcn.h>

#include "src/device/cuda_device.h"

namespace trireme::cuda {

inline constexpr BackEnd kBackEnd = BackEnd::real;
inline std::string flavour_management_library() { return "libnvidia-ml.so.1"; }

// Return why cuBLASLt and NCCL cannot be loaded; empty if they can (late_calls.cc).
std::string flavour_cublaslt_error();
std::string flavour_nccl_error();

// Returns a function of cuDNN; null if it cannot be had, and then says why.
inline void* flavour_cudnn_function(const char* name, std::string& why) {
  static void* const library = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    const char* const error = ::dlerror();
    why = error == nullptr ? std::string("libcudnn.so.9 cannot be loaded") : error;
  }
  return found;
}

// CUDA does not count the calls that wait for a device. The simulated device does, and its tests
// show that a training step makes none.
inline std::int64_t blocking_calls() { return 0; }

// Returns whether the device can copy these bytes; the real one reports an error later.
inline bool can_copy(const void*, std::size_t) { return true; }

}  // namespace trireme::cuda
