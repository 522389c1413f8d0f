// StragglerWatch: names, while the run goes on, the ranks that compute slower than those that do
// the same work. Over windows of `every` steps each rank keeps the time that it did not wait; at a
// window's end the ranks exchange the medians and judge them (src/trace/stragglers.h). Who
// straggles by kSlowness in kWindows windows in a row is named, once until it keeps up again: one
// slow window is somebody else's noise. Owned by the training loop; 8 bytes a rank and window.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct Straggler {
  int rank = 0;
  double of_peers = 1;  // its time over that of its peers
  double score = 0;     // robust z-score
};

class StragglerWatch {
 public:
  static constexpr int kWindows = 3;
  static constexpr double kSlowness = 1.10;

  // peers: ranks with the same number do the same work. every: steps; 0: never judges. The world
  // outlives it.
  StragglerWatch(Communicator& world, int peers, std::int64_t every);

  // After each step, with its time without waits; collective at a window's end. Those to be named
  // now, the same on all ranks.
  std::vector<Straggler> add(double compute_seconds);

 private:
  std::vector<double> gather(double own);

  Communicator& world_;
  std::int64_t every_;
  std::vector<int> peers_;         // of each rank
  std::vector<int> slow_windows_;  // of each rank, in a row
  std::vector<double> window_;     // seconds of this rank's steps
};

}  // namespace trireme
