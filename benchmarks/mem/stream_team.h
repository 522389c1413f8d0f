// StreamTeam runs the kernels of STREAM on pinned threads over arrays of their own. Each thread
// works on one part of the arrays and touches it first, so that it lies on the thread's NUMA node.
// Owned by the benchmark; used by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/pinned_threads.h"
#include "benchmarks/stream_kernels.h"
#include "src/device/pool.h"

namespace trireme {

class StreamTeam {
 public:
  // cores: one thread on each, at least one. array_bytes: of each of the three arrays, at least 64
  // per core.
  StreamTeam(std::vector<PinnedCore> cores, std::int64_t array_bytes);

  // Returns the seconds from the start of the first thread to the end of the last one.
  double run(StreamKernel kernel, StreamStores stores);
  // Returns how many elements of the arrays differ from what the kernels so far have to give.
  std::int64_t wrong() const;
  std::int64_t array_bytes() const { return a_.bytes(); }
  // Returns the bytes that STREAM counts for one run of the kernel.
  double bytes(StreamKernel kernel) const;
  // For tests: makes an element of array a wrong.
  void corrupt(std::int64_t element) { arrays_.a[element] += 1; }

 private:
  StreamArrays part(std::size_t thread) const;

  std::vector<PinnedCore> cores_;
  Pool pool_{Device::cpu()};
  Buffer a_, b_, c_;
  StreamArrays arrays_;
  double expected_a_ = 1;
  double expected_b_ = 2;
  double expected_c_ = 0;
};

}  // namespace trireme
