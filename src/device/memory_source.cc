#include "src/device/memory_source.h"

#include <cstdlib>

#include <sys/mman.h>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

class HostMemory : public MemorySource {
 public:
  void* take(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t) noexcept override { std::free(data); }
};

void* HostMemory::take(std::int64_t bytes) {
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kSmallAlignment;
  void* data = nullptr;
  if (::posix_memalign(&data, static_cast<std::size_t>(alignment),
                       static_cast<std::size_t>(bytes)) != 0) {
    throw ResourceError(
        fmt::format("out of memory: {} more are needed; use a smaller micro-batch or model, or "
                    "fewer ranks per host",
                    format_bytes(bytes)));
  }
  if (bytes >= kHugePage) {
    (void)::madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  }
  return data;
}

class CountingMemory : public MemorySource {
 public:
  void* take(std::int64_t) override { return &address_; }
  void give_back(void*, std::int64_t) noexcept override {}

 private:
  alignas(kSmallAlignment) char address_ = 0;
};

}  // namespace

MemorySource& host_memory() {
  static HostMemory memory;
  return memory;
}

MemorySource& memory_of(Device device) {
  static CountingMemory counting;
  switch (device.kind) {
    case DeviceKind::cpu:
      return host_memory();
    case DeviceKind::counting:
      return counting;
    case DeviceKind::cuda:
      return cuda::device_memory(device.index);
  }
  throw InternalError("unknown kind of device");
}

}  // namespace trireme
