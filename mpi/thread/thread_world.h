// ThreadWorld runs ranks as threads of one process, for tests. Data is copied directly under one
// lock; deadlines, order and errors are the same as with every other transport. If a rank's
// function throws, the operations of the other ranks fail and name that rank. Every rank has its
// own flight recorder and answers every inquiry, since a thread can't be stopped as a process can.
// Used by one thread.
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
  // hosts[r] is the host name of rank r. Ranks without one get distinct names.
  explicit ThreadWorld(int size, std::vector<std::string> hosts = {});
  ~ThreadWorld();

  // Runs the function once per rank, each on a thread of its own, and waits for all. Rethrows the
  // error of the rank that failed first.
  void run(const std::function<void(Communicator&)>& rank_function);
  // Does the same over the transport that `wrap` returns for each rank's own.
  using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;
  void run_over(const Wrap& wrap, const std::function<void(Communicator&)>& rank_function);

  FlightRecorder& recorder(int rank);

 private:
  struct Shared;
  class Link;
  std::shared_ptr<Shared> shared_;
};

}  // namespace trireme
