#include <array>
#include <iterator>
#include <map>
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

// Allocations knows the pieces of all devices' memory.
class Allocations {
 public:
  void add(const void* data, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    ends_[static_cast<const char*>(data)] = static_cast<const char*>(data) + bytes;
  }
  void remove(const void* data) noexcept {
    const std::lock_guard lock(mutex_);
    ends_.erase(static_cast<const char*>(data));
  }
  bool has(const char* data, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto after = ends_.upper_bound(data);
    return after != ends_.begin() && data + bytes <= std::prev(after)->second;
  }

 private:
  std::mutex mutex_;                         // guards ends_
  std::map<const char*, const char*> ends_;  // by begin
};

Allocations& allocations() {
  static Allocations& all = *new Allocations;  // outlives all memory
  return all;
}

class DeviceMemory : public MemorySource {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  void* take(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t) noexcept override {
    allocations().remove(data);
    (void)cudaSetDevice(device_);
    (void)cudaFree(data);
  }

 private:
  int device_;
};

void* DeviceMemory::take(std::int64_t bytes) {
  use_device(device_);
  count_allocation();
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    throw_out_of_device_memory(bytes);
  }
  cuda_check(error, "cudaMalloc");
  allocations().add(data, bytes);
  return data;
}

class PinnedMemory : public MemorySource {
 public:
  explicit PinnedMemory(int device) : device_(device) {}
  void* take(std::int64_t bytes) override {
    use_device(device_);
    count_allocation();
    void* data = nullptr;
    const cudaError_t error = cudaMallocHost(&data, static_cast<std::size_t>(bytes));
    if (error == cudaErrorMemoryAllocation) {
      throw_out_of_pinned_memory(bytes);
    }
    cuda_check(error, "cudaMallocHost");
    return data;
  }
  void give_back(void* data, std::int64_t) noexcept override {
    (void)cudaSetDevice(device_);
    (void)cudaFreeHost(data);
  }

 private:
  int device_;
};

// Returns the source of each device, which is made at the first call and lives until the end.
template <class Source>
Source& source_of(int index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Source>> devices;
  const std::lock_guard lock(mutex);
  for (int next = static_cast<int>(devices.size()); next <= index; ++next) {
    devices.push_back(std::make_unique<Source>(next));
  }
  return *devices[static_cast<std::size_t>(index)];
}

}  // namespace

bool is_one_allocation(const void* data, std::int64_t bytes) {
  return allocations().has(static_cast<const char*>(data), bytes);
}

MemorySource& device_memory(int index) { return source_of<DeviceMemory>(index); }
MemorySource& pinned_memory(int index) { return source_of<PinnedMemory>(index); }

}  // namespace trireme::cuda
