// Arena: the memory of a rank's own segment, handed out in pieces. A first-fit list of what is
// free, by address; the segment grows when nothing fits and never shrinks. Memory gets its pages
// when it is first handed out, by the thread that asks: the owner's NUMA node, and an error instead
// of a signal where there is none. Any thread.
#pragma once

#include <map>
#include <mutex>

#include "mpi/shm/shared_segment.h"
#include "src/device/memory_source.h"

namespace trireme {

class Arena : public MemorySource {
 public:
  explicit Arena(std::shared_ptr<SharedSegment> segment);
  void* take(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) noexcept override;
  // Bytes of memory that the segment has got so far.
  std::int64_t grown_bytes() const;

 private:
  using Ranges = std::map<std::int64_t, std::int64_t>;  // bytes by offset
  std::int64_t cut(Ranges::iterator range, std::int64_t offset, std::int64_t bytes);
  std::int64_t take_offset(std::int64_t bytes, std::int64_t alignment);
  void grow_for(std::int64_t bytes, std::int64_t alignment);
  void insert(std::int64_t offset, std::int64_t bytes) noexcept;

  std::shared_ptr<SharedSegment> segment_;
  mutable std::mutex mutex_;  // guards the rest
  Ranges free_;
  std::int64_t end_ = SharedSegment::kHeaderBytes;
};

// Bytes that this process can still get, by the host and by its control group.
std::int64_t available_memory_bytes();

}  // namespace trireme
