// The table for CUDA devices; where the program is built without CUDA, asking for it is a
// DeviceError (cuda_absent.cc). Owned by the program; read-only.
#pragma once

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& cuda_kernels();

}  // namespace trireme
