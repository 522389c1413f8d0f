// Says which back end is compiled; the include path chooses this file or its namesake.
#pragma once

#include "src/device/cuda_device.h"

namespace trireme::cuda {

inline constexpr BackEnd kBackEnd = BackEnd::real;

}  // namespace trireme::cuda
