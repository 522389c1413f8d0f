// Arena allocates memory from a rank's own segment, first fit by address. The segment grows when
// nothing fits and never shrinks. New memory is populated at once by the thread that asks for it,
// so that it lies on that thread's NUMA node and a shortage is an error instead of a signal. Any
// thread.
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
  // Returns the size in bytes to which the segment has grown.
  std::int64_t grown_bytes() const;

 private:
  using Ranges = std::map<std::int64_t, std::int64_t>;  // size in bytes by offset
  std::int64_t cut(Ranges::iterator range, std::int64_t offset, std::int64_t bytes);
  std::int64_t take_offset(std::int64_t bytes, std::int64_t alignment);
  void grow_for(std::int64_t bytes, std::int64_t alignment);
  void insert(std::int64_t offset, std::int64_t bytes) noexcept;

  std::shared_ptr<SharedSegment> segment_;
  mutable std::mutex mutex_;  // guards the members below
  Ranges free_;
  std::int64_t end_ = SharedSegment::kHeaderBytes;
};

// Returns how many more bytes this process can get from the host and within its control group.
std::int64_t available_memory_bytes();

}  // namespace trireme
