// Staging: the memory that holds one snapshot, laid out as the shard file it becomes, while the
// training loop goes on. It is kept from save to save, so that only the first one pays for its
// pages. The copy runs on several threads; nobody may read the image before it has ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/checkpoint/shard_plan.h"
#include "src/base/unique_handle.h"

namespace trireme {

struct MappedMemory {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  friend bool operator==(const MappedMemory&, const MappedMemory&) = default;
};
struct MappedMemoryTraits {
  using Handle = MappedMemory;
  static Handle none() { return {}; }
  static void close(Handle memory);
};

// Zeroed pages of its own, aligned for O_DIRECT, huge where the system grants them. IoError if
// there is no memory.
class PageBuffer {
 public:
  PageBuffer() = default;
  explicit PageBuffer(std::int64_t bytes);
  std::byte* data() const { return memory_.get().data; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.get().bytes); }

 private:
  UniqueHandle<MappedMemoryTraits> memory_;
};

// Copies the plan's head and blocks to their places in `image`, which has round_up(plan.bytes,
// kDataAlignment) bytes; what the file does not fill becomes zeros.
void fill_image(const ShardPlan& plan, std::byte* image, int threads);
// Writes zeros all over it: its pages are there afterwards.
void touch(std::byte* data, std::int64_t bytes, int threads);

class Staging {
 public:
  // Takes the memory for images of up to so many bytes, and touches it.
  void reserve(std::int64_t image_bytes, int threads);
  // Copies head and blocks to their places.
  void fill(const ShardPlan& plan, int threads);
  // As many bytes as the plan's file, followed by zeros up to a multiple of kDataAlignment.
  const std::byte* image() const { return buffer_.data(); }
  std::int64_t reserved_bytes() const { return buffer_.bytes(); }

 private:
  PageBuffer buffer_;
};

}  // namespace trireme
