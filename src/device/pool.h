// Pool is a caching allocator for one device. A training step requests the same sizes each time, so
// that after the first step nothing is taken from its source. Buffers are aligned to 64 bytes,
// large ones to 2 MiB, and may outlive neither their pool nor the device. Several threads may use a
// pool.
#pragma once

#include <cstdint>
#include <memory>

#include "src/device/device.h"
#include "src/device/memory_source.h"

namespace trireme {

class Pool;

// Buffer is the sole owner of a piece of a pool's memory, which its destructor returns to the pool.
// The memory is not initialized.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  Device device() const;
  View view(DType dtype) const { return {data_, bytes_ / size_of(dtype), dtype, device()}; }

 private:
  friend class Pool;
  Buffer(Pool* pool, void* data, std::int64_t bytes, std::int64_t capacity)
      : pool_(pool), data_(data), bytes_(bytes), capacity_(capacity) {}
  void give_back();

  Pool* pool_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t capacity_ = 0;
};

class Pool {
 public:
  // While a Lending exists whose `is_on` is set, a request without a free block of its own size
  // gets the smallest free block that is larger, before memory is taken from the source: for work
  // that is like the usual one but smaller, so that it takes no memory of its own.
  class Lending {
   public:
    Lending(Pool& pool, bool is_on);
    ~Lending();
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;

   private:
    Pool& pool_;
    bool is_on_;
  };

  explicit Pool(Device device) : Pool(device, memory_of(device)) {}
  // source: memory of the device.
  Pool(Device device, MemorySource& source);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Buffer allocate(std::int64_t bytes);
  Device device() const { return device_; }
  MemorySource& source() const { return source_; }
  // Return the bytes taken from the source, and the most that were in use at one time.
  std::int64_t reserved_bytes() const;
  std::int64_t peak_bytes() const;

 private:
  friend class Buffer;
  struct State;
  void give_back(void* data, std::int64_t capacity);

  Device device_;
  MemorySource& source_;
  std::unique_ptr<State> state_;
};

}  // namespace trireme
