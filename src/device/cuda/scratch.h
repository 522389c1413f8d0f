// Scratch is device memory that holds a value only within one entry of the kernel table: the next
// entry in the same order of work may overwrite it. Each CudaQueue owns one for its stream. An area
// that has become too small stays allocated until the end, because work in flight or a captured
// graph may still use it; areas grow at least twofold, so all of them together take at most twice
// the largest. Growing allocates device memory, which is not permitted during a capture: run a step
// before it is captured. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme::cuda {

class Scratch {
 public:
  Scratch() = default;
  // The work that uses the memory has finished, and its device is that of the calling thread.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Returns at least `bytes` bytes on the device of the calling thread, aligned to 256 bytes.
  // Throws ResourceError if there is no memory left.
  void* take(std::int64_t bytes);

 private:
  std::vector<void*> areas_;
  std::int64_t bytes_ = 0;  // of the newest area
};

}  // namespace trireme::cuda
