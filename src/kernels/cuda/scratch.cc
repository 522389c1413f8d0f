#include "src/kernels/cuda/scratch.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kLeast = std::int64_t{64} << 10;  // bytes

struct Area {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

std::mutex areas_mutex;

// Areas are never freed: at exit, the device may be gone before static objects are.
std::map<cudaStream_t, Area>& areas() {
  static auto* const all = new std::map<cudaStream_t, Area>;
  return *all;
}

}  // namespace

void* scratch(cudaStream_t stream, std::int64_t bytes) {
  const std::lock_guard lock(areas_mutex);
  Area& area = areas()[stream];
  if (area.bytes < bytes) {
    const std::int64_t wanted = std::max({bytes, 2 * area.bytes, kLeast});
    count_allocation();
    void* data = nullptr;
    const cudaError_t outcome = cudaMalloc(&data, static_cast<std::size_t>(wanted));
    if (outcome == cudaErrorMemoryAllocation) {
      throw_out_of_device_memory(wanted);
    }
    cuda_check(outcome, "cudaMalloc");
    area = {data, wanted};
  }
  return area.data;
}

}  // namespace trireme::cuda
