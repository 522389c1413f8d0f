// Describes products and their algorithms as text, which the numerics fingerprint holds. Pure
// functions.
#pragma once

#include <string>

#include "src/kernels/cuda/product_plan.h"

namespace trireme::cuda {

// Returns what distinguishes the kind, without its device: for example
// "768x3072x1024 BF16 to F32, A transposed, added to C".
std::string describe(const ProductKind& kind);

// Returns the numbers that configure an algorithm of cuBLASLt: for example "algorithm 66, tile 20,
// stages 35, split-K 1, reduction 0, swizzle 0, custom 0, inner shape 0, cluster 2".
std::string describe(const cublasLtMatmulAlgo_t& algorithm);

}  // namespace trireme::cuda
