// ShmThreadWorld connects ranks that are threads of one process by the shared-memory transport, so
// that a race detector sees all accesses.
#pragma once

#include <functional>

#include "mpi/shm/shared_segment.h"
#include "mpi/thread/thread_world.h"

namespace trireme {

class ShmThreadWorld {
 public:
  explicit ShmThreadWorld(int size);
  // Works like ThreadWorld::run().
  void run(const std::function<void(Communicator&)>& rank_function);

 private:
  int size_;
  ThreadWorld world_;
  SegmentTable table_;
};

}  // namespace trireme
