// Declares the kernel table for CUDA devices. A program without CUDA is linked with
// src/kernels/cuda_absent, where all of this throws ConfigError. Owned by the program; read-only.
#pragma once

#include <string>

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& cuda_kernels();
// Returns, for example, "cuBLASLt 13.1.0".
std::string cuda_product_library();
// Returns, for example, "sm_90", or "simulated device": what this process's device executes.
std::string cuda_instructions();

}  // namespace trireme
