// Rounds the operands of a product to 8 bits, in the layout that cuBLASLt wants for them on Hopper:
// the index along the sum is the inner one. Everything lies in scratch memory behind the workspace
// of the product.
#pragma once

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

// The sizes of products of 8 bits, and the addresses of their matrices, are multiples of this.
inline constexpr std::int64_t kFp8Multiple = 16;
// Scratch memory beside the rounded operands: their scales, and the largest magnitudes of blocks.
inline constexpr std::int64_t kFp8ScaleBytes = 256;
inline constexpr std::int64_t kFp8MostParts = 1024;
inline constexpr std::int64_t kFp8NoteBytes = kFp8ScaleBytes + kFp8MostParts * 4;

struct Fp8Operands {
  const void* a = nullptr;         // [M, K]
  const void* b = nullptr;         // [N, K]
  const float* a_scale = nullptr;  // by which the product multiplies a, and b
  const float* b_scale = nullptr;
};

// Enqueues the rounding of both operands, on the product's stream. Precondition: bf16 operands.
Fp8Operands round_operands(Stream& stream, const Matmul& product);

}  // namespace trireme::cuda
