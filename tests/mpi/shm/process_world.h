// ProcessWorld: ranks that are processes of their own, without a launcher that would end them all
// when one dies. They find each other through sockets, then share memory. For tests that kill.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "mpi/communicator.h"

namespace trireme {

class ProcessWorld {
 public:
  // Starts the ranks. Each runs the function on its communicator, reports what() of the error that
  // ended it, or "", and lives until the world ends. No threads may run in the caller.
  ProcessWorld(int size, const std::function<void(Communicator&)>& rank_function);
  // Kills what is left.
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  void signal(int rank, int number) const;
  // Waits until the rank reports; "nothing" if it does not within the limit.
  std::string report(int rank, double limit_seconds);

 private:
  struct Rank {
    pid_t pid = -1;
    int reports = -1;  // the reading end
  };
  int life_[2] = {-1, -1};  // ranks live until the writing end is closed
  std::vector<Rank> ranks_;
};

}  // namespace trireme
