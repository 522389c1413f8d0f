// Declares the kernel table for CUDA devices. A program without CUDA is linked with
// src/kernels/cuda_absent, where all of this throws ConfigError. Owned by the program; read-only.
#pragma once

#include <cstdint>
#include <string>

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& cuda_kernels();
// Returns, for example, "cuBLASLt 13.1.0".
std::string cuda_product_library();
// Returns, for example, "sm_90 on NVIDIA H100 80GB HBM3", or "simulated
// device": what this process's device executes.
std::string cuda_instructions();
// Returns the most device memory that kernels and products take for themselves beside the pools,
// with the code that CUDA loads at first use. longest_sum: terms of the longest sum in a product;
// element_bytes: size of its operands' elements.
std::int64_t cuda_workspace_bytes(std::int64_t longest_sum, std::int64_t element_bytes);

}  // namespace trireme
