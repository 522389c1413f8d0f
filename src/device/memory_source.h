// MemorySource: where a Pool takes its memory from. Outlives the pools that use it. Safe to use
// from several threads.
#pragma once

#include <cstdint>

#include "src/device/device.h"

namespace trireme {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // At least `bytes`, aligned to 64 bytes, of 2 MiB and more to 2 MiB; not initialized. DeviceError
  // when there is no more.
  virtual void* take(std::int64_t bytes) = 0;
  virtual void give_back(void* data, std::int64_t bytes) noexcept = 0;
};

// The host's ordinary memory, large pieces with huge pages where the system grants them.
MemorySource& host_memory();
// The device's ordinary memory: host_memory() for the CPU; for DeviceKind::counting one address for
// everybody, which nobody dereferences. Throws DeviceError if this program is built without a back
// end for the device.
MemorySource& memory_of(Device device);

}  // namespace trireme
