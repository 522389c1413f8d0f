#include "src/device/cuda/scratch.h"

#include <algorithm>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kLeastScratch = std::int64_t{64} << 10;  // bytes

}  // namespace

Scratch::~Scratch() {
  for (void* const area : areas_) {
    (void)cudaFree(area);
  }
}

void* Scratch::take(std::int64_t bytes) {
  if (bytes_ < bytes) {
    const std::int64_t wanted = std::max({bytes, 2 * bytes_, kLeastScratch});
    count_allocation();
    void* data = nullptr;
    const cudaError_t outcome = cudaMalloc(&data, static_cast<std::size_t>(wanted));
    if (outcome == cudaErrorMemoryAllocation) {
      throw_out_of_device_memory(wanted);
    }
    cuda_check(outcome, "cudaMalloc");
    areas_.push_back(data);
    bytes_ = wanted;
  }
  return areas_.empty() ? nullptr : areas_.back();
}

}  // namespace trireme::cuda
