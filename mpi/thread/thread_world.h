// ThreadWorld: ranks that are threads of one process, for tests. Data moves through the shared
// memory under one lock; deadlines, order and errors are those of every other transport. When a
// rank's function throws, the others' operations fail and name it. Every rank has its flight
// recorder, and answers every inquiry: unlike a process, it can't be stopped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/communicator.h"
#include "mpi/watch/flight_recorder.h"

namespace trireme {

class ThreadWorld {
 public:
  // Host names by rank; without them each rank has a made-up host of its own.
  explicit ThreadWorld(int size, std::vector<std::string> hosts = {});
  ~ThreadWorld();

  // Runs the function once a rank, on a thread of its own, and waits for all. Throws what the first
  // rank to fail threw.
  void run(const std::function<void(Communicator&)>& rank_function);
  // The same over what `wrap` makes of each rank's transport.
  using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;
  void run_over(const Wrap& wrap, const std::function<void(Communicator&)>& rank_function);

  FlightRecorder& recorder(int rank);

 private:
  struct Shared;
  class Link;
  std::shared_ptr<Shared> shared_;
};

}  // namespace trireme
