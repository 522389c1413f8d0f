// MemoryRate: how many bytes a second the ranks' memory gives, all ranks at the same time, one
// thread each: STREAM's triad a[i] = b[i] + s c[i] over arrays of 64 MiB, its bytes counted as
// STREAM does (24 an element; the line that a store first reads is not counted). The ceiling of an
// all-reduce inside a host.
#pragma once

#include <vector>

#include "mpi/communicator.h"

namespace trireme {

class MemoryRate {
 public:
  MemoryRate();
  // Bytes a second of one rank, the slowest rank's time counting in each of five rounds; the
  // median. Collective.
  double measure(Communicator& comm);

 private:
  std::vector<double> a_, b_, c_;
};

// What each rank of an all-reduce in shared memory has to move at least: its share of every rank's
// array read, the result written to as many: twice the array's bytes.
inline double all_reduce_bytes_moved(std::int64_t bytes) {
  return 2.0 * static_cast<double>(bytes);
}

}  // namespace trireme
