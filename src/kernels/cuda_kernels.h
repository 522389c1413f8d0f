// Declares the kernel table for CUDA devices. A program without CUDA is linked with
// src/kernels/cuda_absent, where all of this throws ConfigError. Owned by the program; read-only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/kernels/kernels.h"

namespace trireme {

// CudaAttention says who computes attention: the program's own kernels, or cuDNN where its graphs
// cover a call (src/kernels/cuda/cudnn_attention.h).
enum class CudaAttention : std::uint8_t { own, cudnn };

// With cudnn, loads the library. Throws ConfigError if it is missing or of the wrong version.
const Kernels& cuda_kernels(CudaAttention attention = CudaAttention::own);
// Returns, for example, "cuBLASLt 13.1.0".
std::string cuda_product_library();
// Returns, for example, "sm_90 on NVIDIA H100 80GB HBM3", or "simulated
// device": what this process's device executes.
std::string cuda_instructions();
// Returns the most device memory that kernels and products take for themselves beside the pools,
// with the code that CUDA loads at first use. fp8_bytes: size of the rounded operands of the
// largest product in fp8, or 0. attention_bytes: what cuDNN takes for attention
// (cuda_attention_bytes), or 0.
std::int64_t cuda_workspace_bytes(std::int64_t fp8_bytes, std::int64_t attention_bytes);
// Returns the most that choosing algorithms takes in addition, until close_cuda_choices().
// longest_sum: terms of the longest sum in a product; element_bytes: size of its operands'
// elements.
std::int64_t cuda_choice_bytes(std::int64_t longest_sum, std::int64_t element_bytes);

// ProductTable names products, and the algorithm with which cuBLASLt computes each: for example
// "768x3072x1024 BF16 to F32, A transposed" and "algorithm 66, tile 20, ...". Two devices with the
// same table compute the same bits. "not offered" stands for a product with more parts than the
// library has an algorithm for; kernels then do a part, and the rest has an entry of its own.
using ProductTable = std::map<std::string, std::string>;
// Chooses algorithms for these products, unless that was done before, and checks each with sums of
// ones. Of the operands, only alignments count, so that products recorded on a counting device
// (no_kernels.h) will do. Throws DeviceError if no algorithm is exact.
ProductTable choose_cuda_products(int device, const std::vector<Matmul>& products);

// Calls of attention, of which only sizes and alignments count.
struct AttentionCalls {
  std::vector<AttentionForward> forward = {};
  std::vector<AttentionForward> backward = {};  // what AttentionBackward::forward says
};
// Chooses engines of cuDNN in the same way. Throws ConfigError if there is no deterministic one.
ProductTable choose_cuda_attention(int device, const AttentionCalls& calls);
// Returns the most memory that cuDNN takes for a call of attention and its gradient.
std::int64_t cuda_attention_bytes(const AttentionForward& call);
// Ends choosing: from now on, a product for which no algorithm was chosen throws InternalError.
// Frees the memory that choosing has taken.
void close_cuda_choices(int device);

}  // namespace trireme
