// MemoryRate measures how many bytes per second the memory delivers to all ranks together, with one
// thread each. It runs STREAM's triad a[i] = b[i] + s c[i] over arrays of 64 MiB, on huge pages if
// available, once with ordinary stores and once with stores that bypass the caches; the faster one
// counts. Bytes are counted as in STREAM, 24 per element, without the line that an ordinary store
// reads first. The rate is the ceiling of an all-reduce within a host.
#pragma once

#include "mpi/communicator.h"
#include "src/device/pool.h"

namespace trireme {

class MemoryRate {
 public:
  MemoryRate();
  // Returns bytes per second and rank: the median over five rounds of the slowest rank's time.
  // Collective.
  double measure(Communicator& comm);

 private:
  Pool pool_{Device::cpu()};
  Buffer a_, b_, c_;
};

// Returns the bytes that each rank of an all-reduce in shared memory has to move at least: it reads
// its share of every rank's array and writes as much, in total twice the array's bytes.
inline double all_reduce_bytes_moved(std::int64_t bytes) {
  return 2.0 * static_cast<double>(bytes);
}

}  // namespace trireme
