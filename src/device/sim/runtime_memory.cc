// Memory and copies of the runtime's interface.
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "src/device/sim/call.h"
#include "src/device/sim/capture.h"
#include "src/device/sim/machine.h"

namespace {

using sim::begin_call;
using sim::end_call;
using sim::machine;

constexpr std::size_t kPage = 4096;

// Returns the pinned piece that the address lies in, or the end. The mutex must be held.
auto find_pinned(const void* address) {
  auto& pinned = machine().pinned;
  const auto* at = static_cast<const std::byte*>(address);
  auto found = pinned.upper_bound(at);
  if (found == pinned.begin()) {
    return pinned.end();
  }
  --found;
  return at < found->first + found->second ? found : pinned.end();
}

// Checks one side of an asynchronous copy: within one allocation of a device, or within one pinned
// piece of the host's memory. A real device would copy pageable memory, but not asynchronously.
bool is_copyable(const void* address, std::size_t bytes, bool& on_device) {
  const std::lock_guard lock(machine().mutex);
  const sim::DeviceMemory* memory = machine().memory_of(address);
  on_device = memory != nullptr;
  if (on_device) {
    return memory->holds(address, bytes);
  }
  const auto found = find_pinned(address);
  return found != machine().pinned.end() &&
         static_cast<const std::byte*>(address) + bytes <= found->first + found->second;
}

bool fits_kind(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

struct Rows {
  std::size_t bytes;  // of a row
  std::size_t count;
  std::size_t to_pitch;
  std::size_t from_pitch;
};

cudaError_t enqueue_copy(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind,
                         cudaStream_t stream) {
  if (rows.bytes == 0 || rows.count == 0) {
    return cudaSuccess;
  }
  bool to_device = false;
  bool from_device = false;
  if (!is_copyable(to, (rows.count - 1) * rows.to_pitch + rows.bytes, to_device) ||
      !is_copyable(from, (rows.count - 1) * rows.from_pitch + rows.bytes, from_device) ||
      !fits_kind(kind, to_device, from_device)) {
    return cudaErrorInvalidValue;
  }
  return machine().enqueue(stream, [=] {
    std::byte* target = sim::accessible(to);
    const std::byte* source = sim::accessible(from);
    for (std::size_t row = 0; row < rows.count; ++row) {
      std::memmove(target + row * rows.to_pitch, source + row * rows.from_pitch, rows.bytes);
    }
    return true;
  });
}

cudaError_t enqueue_fill(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  bool on_device = false;
  if (bytes > 0 && (!is_copyable(to, bytes, on_device) || !on_device)) {
    return cudaErrorInvalidValue;
  }
  return machine().enqueue(stream, [=] {
    std::memset(sim::accessible(to), value, bytes);
    return true;
  });
}

cudaError_t begin_unless_capturing(const char* name) {
  const cudaError_t error = begin_call(name);
  return error != cudaSuccess ? error : end_call(sim::refuse_during_capture());
}

cudaError_t take_device_memory(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) {
    return cudaSuccess;
  }
  const std::lock_guard lock(machine().mutex);
  *memory = machine().memory(sim::current_device()).take(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Returns the current device for addresses of the host.
int device_of(const void* memory) {
  int device = sim::current_device();
  machine().memory_of(memory, &device);
  return device;
}

cudaError_t give_device_memory_back(void* memory) {
  const std::lock_guard lock(machine().mutex);
  sim::DeviceMemory* device = machine().memory_of(memory);
  return device != nullptr && device->give_back(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t register_pinned(void* memory, std::size_t bytes) {
  const auto* start = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(machine().mutex);
  auto& pinned = machine().pinned;
  const auto next = pinned.lower_bound(start);
  if (memory == nullptr || bytes == 0) {
    return cudaErrorInvalidValue;
  }
  if (find_pinned(memory) != pinned.end() ||
      (next != pinned.end() && next->first < start + bytes)) {
    return cudaErrorHostMemoryAlreadyRegistered;
  }
  pinned[start] = bytes;
  return cudaSuccess;
}

cudaError_t take_pinned_memory(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) {
    return cudaSuccess;
  }
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*memory == nullptr) {
    return cudaErrorMemoryAllocation;
  }
  std::memset(*memory, 0xFF, bytes);
  return register_pinned(*memory, bytes);
}

}  // namespace

namespace sim {

bool can_copy(const void* data, std::size_t bytes) {
  bool on_device = false;
  return is_copyable(data, bytes, on_device);
}

}  // namespace sim

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const cudaError_t error = begin_unless_capturing("cudaMalloc");
  return error != cudaSuccess ? error : end_call(take_device_memory(memory, bytes));
}
cudaError_t cudaFree(void* memory) {
  cudaError_t error = begin_unless_capturing("cudaFree");
  if (error != cudaSuccess || memory == nullptr) {
    return error;
  }
  error = machine().synchronize_device(device_of(memory));
  return end_call(error != cudaSuccess ? error : give_device_memory_back(memory));
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  const cudaError_t error = begin_unless_capturing("cudaMallocAsync");
  return error != cudaSuccess ? error : end_call(take_device_memory(memory, bytes));
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  const cudaError_t error = begin_unless_capturing("cudaFreeAsync");
  if (error != cudaSuccess) {
    return error;
  }
  return end_call(machine().enqueue(stream, [memory] {
    if (give_device_memory_back(memory) != cudaSuccess) {
      machine().fail(cudaErrorIllegalAddress);
    }
    return true;
  }));
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const cudaError_t error = begin_call("cudaMemGetInfo");
  const std::lock_guard lock(machine().mutex);
  const sim::DeviceMemory& memory = machine().memory(sim::current_device());
  *free_bytes = memory.free_bytes();
  *total_bytes = memory.bytes();
  return error;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const cudaError_t error = begin_unless_capturing("cudaMallocHost");
  return error != cudaSuccess ? error : end_call(take_pinned_memory(memory, bytes));
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const cudaError_t error = begin_unless_capturing("cudaHostAlloc");
  return error != cudaSuccess ? error : end_call(take_pinned_memory(memory, bytes));
}
cudaError_t cudaFreeHost(void* memory) {
  cudaError_t error = begin_unless_capturing("cudaFreeHost");
  if (error != cudaSuccess || memory == nullptr) {
    return error;
  }
  error = machine().synchronize_device(sim::current_device());
  {
    const std::lock_guard lock(machine().mutex);
    if (machine().pinned.erase(static_cast<std::byte*>(memory)) == 0) {
      return end_call(cudaErrorInvalidValue);
    }
  }
  std::free(memory);
  return end_call(error);
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  const cudaError_t error = begin_unless_capturing("cudaHostRegister");
  return error != cudaSuccess ? error : end_call(register_pinned(memory, bytes));
}
cudaError_t cudaHostUnregister(void* memory) {
  const cudaError_t error = begin_unless_capturing("cudaHostUnregister");
  if (error != cudaSuccess) {
    return error;
  }
  const std::lock_guard lock(machine().mutex);
  const bool known = machine().pinned.erase(static_cast<std::byte*>(memory)) > 0;
  return end_call(known ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const cudaError_t error = begin_call("cudaPointerGetAttributes");
  *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, const_cast<void*>(memory)};
  const std::lock_guard lock(machine().mutex);
  int device = 0;
  if (machine().memory_of(memory, &device) != nullptr) {
    *attributes = {cudaMemoryTypeDevice, device, const_cast<void*>(memory), nullptr};
  } else if (find_pinned(memory) != machine().pinned.end()) {
    auto* address = const_cast<void*>(memory);
    *attributes = {cudaMemoryTypeHost, sim::current_device(), address, address};
  }
  return error;
}

// Copies at once, also pageable memory.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaError_t error = begin_unless_capturing("cudaMemcpy");
  if (error != cudaSuccess || bytes == 0) {
    return error;
  }
  {
    const std::lock_guard lock(machine().mutex);
    const sim::DeviceMemory* target = machine().memory_of(to);
    const sim::DeviceMemory* source = machine().memory_of(from);
    if ((target != nullptr && !target->holds(to, bytes)) ||
        (source != nullptr && !source->holds(from, bytes)) ||
        !fits_kind(kind, target != nullptr, source != nullptr)) {
      return end_call(cudaErrorInvalidValue);
    }
  }
  error = machine().enqueue(nullptr, [=] {
    std::memmove(sim::accessible(to), sim::accessible(from), bytes);
    return true;
  });
  return end_call(error != cudaSuccess ? error : machine().synchronize(cudaStream_t{}));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaMemcpyAsync");
  return error != cudaSuccess
             ? error
             : end_call(enqueue_copy(to, from, {bytes, 1, bytes, bytes}, kind, stream));
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaMemcpy2DAsync");
  if (error != cudaSuccess) {
    return error;
  }
  if (width > to_pitch || width > from_pitch) {
    return end_call(cudaErrorInvalidValue);
  }
  return end_call(enqueue_copy(to, from, {width, height, to_pitch, from_pitch}, kind, stream));
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  const cudaError_t error = begin_unless_capturing("cudaMemset");
  return error != cudaSuccess ? error : end_call(enqueue_fill(to, value, bytes, nullptr));
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaMemsetAsync");
  return error != cudaSuccess ? error : end_call(enqueue_fill(to, value, bytes, stream));
}
}
