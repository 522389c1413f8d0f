#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"
#include "src/device/cuda_device.h"

namespace trireme::cuda {
namespace {

class DeviceMemory : public MemorySource {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  void* take(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t) noexcept override {
    (void)cudaSetDevice(device_);
    (void)cudaFree(data);
  }

 private:
  int device_;
};

void* DeviceMemory::take(std::int64_t bytes) {
  cuda_check(cudaSetDevice(device_), "cudaSetDevice");
  count_allocation();
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    throw_out_of_device_memory(bytes);
  }
  cuda_check(error, "cudaMalloc");
  return data;
}

class PinnedMemory : public MemorySource {
 public:
  void* take(std::int64_t bytes) override {
    count_allocation();
    void* data = nullptr;
    const cudaError_t error = cudaMallocHost(&data, static_cast<std::size_t>(bytes));
    if (error == cudaErrorMemoryAllocation) {
      throw_out_of_pinned_memory(bytes);
    }
    cuda_check(error, "cudaMallocHost");
    return data;
  }
  void give_back(void* data, std::int64_t) noexcept override { (void)cudaFreeHost(data); }
};

}  // namespace

MemorySource& device_memory(int index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<DeviceMemory>> devices;
  const std::lock_guard lock(mutex);
  for (int next = static_cast<int>(devices.size()); next <= index; ++next) {
    devices.push_back(std::make_unique<DeviceMemory>(next));
  }
  return *devices[static_cast<std::size_t>(index)];
}

MemorySource& pinned_memory() {
  static PinnedMemory memory;
  return memory;
}

}  // namespace trireme::cuda
