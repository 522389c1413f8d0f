// Says which back end is compiled; the include path chooses this file or its namesake.
#pragma once

#include <string>

#include "src/device/cuda_device.h"

namespace trireme::cuda {

inline constexpr BackEnd kBackEnd = BackEnd::real;
inline std::string flavour_management_library() { return "libnvidia-ml.so.1"; }

// CUDA does not count the calls that wait for a device. The simulated device does, and its tests
// show that a training step makes none.
inline std::int64_t blocking_calls() { return 0; }

}  // namespace trireme::cuda
