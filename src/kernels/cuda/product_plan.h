// ProductPlan is how cuBLASLt computes products of one kind: the description of the operation, the
// layouts and the algorithm. Plans are made once per kind and kept, so that the algorithm, and with
// it the bits of the result, does not change within a process. Split-K is not permitted. Before its
// first use, an algorithm must compute sums of ones exactly, because versions of cuBLASLt are known
// that lose the end of a sum (facebookexperimental/triton#2767).
//
// cuBLASLt's matrices are column-major. A row-major matrix is its transpose, so the plan computes
// C^T = op(B)^T op(A)^T: the library's first operand is B, and its rows are the columns of C.
#pragma once

#include <memory>

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

// What distinguishes plans. Alignments are powers of two, in bytes.
struct ProductKind {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType type = DType::f32;  // of A, B, the bias and aux
  DType c_type = DType::f32;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;
  Epilogue epilogue = Epilogue::none;
  int device = 0;
  int alignment_a = 0;
  int alignment_b = 0;
  int alignment_c = 0;
  int alignment_bias = 0;
  int alignment_aux = 0;
  friend auto operator<=>(const ProductKind&, const ProductKind&) = default;
};

// Operands holds the addresses of one product.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
};

// Returns the kind of a product whose epilogue and bias may be left out.
ProductKind kind_of(const Matmul& p, int device, bool with_bias, bool with_epilogue);

// Enqueues the product, and returns whether cuBLASLt can compute products of this kind; if not,
// nothing was enqueued. Throws DeviceError if the library fails or no algorithm is exact. The first
// product of a kind waits for the stream and must not be captured.
bool enqueue_product(cudaStream_t stream, const ProductKind& kind, const ProductOperands& operands);

// Returns the most device memory that products take beside their operands (cuda_kernels.h).
std::int64_t product_workspace_bytes(std::int64_t longest_sum, std::int64_t element_bytes);

}  // namespace trireme::cuda
