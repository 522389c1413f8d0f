// MemoryRate: how many bytes a second the ranks' memory gives, all ranks at the same time, one
// thread each: STREAM's triad a[i] = b[i] + s c[i] over arrays of 64 MiB on huge pages where the
// system grants them, once with ordinary stores and once with stores that pass the caches by; the
// faster one counts. Its bytes are counted as STREAM does: 24 an element, not the line that an
// ordinary store reads first. The ceiling of an all-reduce inside a host.
#pragma once

#include "mpi/communicator.h"
#include "src/device/pool.h"

namespace trireme {

class MemoryRate {
 public:
  MemoryRate();
  // Bytes a second of one rank: of each of five rounds the slowest rank's time, of those the
  // median. Collective.
  double measure(Communicator& comm);

 private:
  Pool pool_{Device{}};
  Buffer a_, b_, c_;
};

// What each rank of an all-reduce in shared memory has to move at least: its share of every rank's
// array read, the result written to as many: twice the array's bytes.
inline double all_reduce_bytes_moved(std::int64_t bytes) {
  return 2.0 * static_cast<double>(bytes);
}

}  // namespace trireme
