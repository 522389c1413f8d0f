// Declares the kernel table for CUDA devices. Requesting it throws DeviceError if the program is
// built without CUDA (cuda_absent.cc). Owned by the program; read-only.
#pragma once

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& cuda_kernels();

}  // namespace trireme
