// Provides memory that holds shard files: page-aligned buffers, and the copy that fills one with an
// image, the shard file that a snapshot becomes. The copy uses several threads and has ended when
// it returns.
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

// PageBuffer owns zeroed anonymous pages, aligned for O_DIRECT, and huge pages if the system grants
// them. Throws IoError if there is not enough memory.
class PageBuffer {
 public:
  PageBuffer() = default;
  explicit PageBuffer(std::int64_t bytes);
  std::byte* data() const { return memory_.get().data; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.get().bytes); }

 private:
  UniqueHandle<MappedMemoryTraits> memory_;
};

// Copies the plan's head and blocks to their places in `image` [round_up(plan.bytes,
// kDataAlignment)]; the bytes after the end of the file become zeros.
void fill_image(const ShardPlan& plan, std::byte* image, int threads);
// Overwrites data [bytes] with zeros, so that all its pages are allocated.
void touch(std::byte* data, std::int64_t bytes, int threads);

}  // namespace trireme
