// ShmThreadWorld: the shared-memory transport between ranks that are threads of one process, where
// a race detector sees everything.
#pragma once

#include <functional>

#include "mpi/shm/shared_segment.h"
#include "mpi/thread/thread_world.h"

namespace trireme {

class ShmThreadWorld {
 public:
  explicit ShmThreadWorld(int size);
  // As ThreadWorld's.
  void run(const std::function<void(Communicator&)>& rank_function);

 private:
  int size_;
  ThreadWorld world_;
  SegmentTable table_;
};

}  // namespace trireme
