// Reduces the ranks' blocks on a CUDA device in the order of the canonical tree (communicator.h).
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "mpi/operation_request.h"

namespace trireme {

// into [count] becomes the reduction of blocks [parts, stride], of which each holds `count`
// elements. The sums of bf16 and f16 are taken in f32 and rounded once. All memory is on the
// device. Sums of f32 are fastest if both pointers and the stride are aligned to 16 bytes.
struct TreeSum {
  const void* blocks = nullptr;
  void* into = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;  // elements
  int parts = 0;
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
};
void reduce_in_tree(cudaStream_t stream, const TreeSum& sum);

}  // namespace trireme
