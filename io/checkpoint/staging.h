// Memory that holds shard files: page-aligned buffers, and filling one with an image, the shard
// file that a snapshot becomes. The copy runs on several threads; nobody reads the image before it
// has ended.
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

}  // namespace trireme
