// Makes what a run of the program makes before its first step on a CUDA device.
#pragma once

#include "src/kernels/cuda_kernels.h"
#include "src/train/memory/step_memory.h"

namespace trireme {

inline const Kernels& device_kernels(const RunConfig& config) {
  return cuda_kernels(config.train.attends_by_cudnn() ? CudaAttention::cudnn : CudaAttention::own);
}

// Chooses the algorithms of a rank's steps, and permits no others.
inline void choose_algorithms(const RunConfig& config, const Layout& layout, int rank, int device) {
  const LibraryCalls calls = step_calls(config, layout, rank);
  (void)choose_cuda_products(device, calls.products);
  if (config.train.attends_by_cudnn()) {
    (void)choose_cuda_attention(device, calls.attention);
  }
  close_cuda_choices(device);
}

}  // namespace trireme
