// StragglerWatch reports ranks that compute more slowly than those that do the same work. Over
// windows of `every` steps, each rank records its time without waits; at the end of a window the
// ranks exchange their medians and judge them (src/trace/stragglers.h). A rank that is slower by
// kSlowness in kWindows windows in a row is reported, once until it keeps up again; a single slow
// window may be noise from elsewhere. Owned by TrainingParts; 8 bytes per rank and window are
// exchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct Straggler {
  int rank = 0;
  double of_peers = 1;  // its time divided by the median of its peers
  double score = 0;     // robust z-score
};

class StragglerWatch {
 public:
  static constexpr int kWindows = 3;
  static constexpr double kSlowness = 1.10;

  // Ranks with the same number `peers` do the same work. `every` is in steps; 0 means never. The
  // world must outlive the object. Collective.
  StragglerWatch(Communicator& world, int peers, std::int64_t every);

  // Call after each step with its time without waits. Collective at the end of a window. Returns
  // the stragglers to report now, the same on all ranks.
  std::vector<Straggler> add(double compute_seconds);

 private:
  std::vector<double> gather(double own);

  Communicator& world_;
  std::int64_t every_;
  std::vector<int> peers_;         // peer number of each rank
  std::vector<int> slow_windows_;  // consecutive slow windows of each rank
  std::vector<double> window_;     // seconds of this rank's steps in this window
};

}  // namespace trireme
