// MemorySource provides the memory of pools, which it outlives. Several threads may use it.
#pragma once

#include <cstdint>

#include "src/device/device.h"

namespace trireme {

inline constexpr std::int64_t kSmallAlignment = 64;  // bytes; of blocks below 2 MiB

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Returns at least `bytes` bytes, which are not initialized. Blocks of 2 MiB and more are aligned
  // to 2 MiB, smaller ones to kSmallAlignment. Throws ResourceError if there is no memory left.
  virtual void* take(std::int64_t bytes) = 0;
  virtual void give_back(void* data, std::int64_t bytes) noexcept = 0;
};

// Returns the host's ordinary memory. Large pieces are on huge pages where the system grants them.
MemorySource& host_memory();
// Returns the device's ordinary memory: host_memory() for the CPU. For DeviceKind::counting, every
// take() returns the same address, which must not be dereferenced. Throws ConfigError if this
// program is built without a back end for the device.
MemorySource& memory_of(Device device);

}  // namespace trireme
