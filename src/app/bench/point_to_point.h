// Measures two ranks of a group that send to each other, as OSU's benchmarks do. Both call the same
// function, `sends` true on one of them; other ranks of the group may do the same among themselves
// at the same time. Times are those of the one that sends first, and 0 on the other.
#pragma once

#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct PointToPoint {
  int peer = 0;
  bool sends = false;
  int warmup = 0;
  int iterations = 1;
};

// Seconds of a message one way, half of there and back, each iteration. data[bytes], of u8.
std::vector<double> latency_seconds(Communicator& comm, const View& data, const PointToPoint& how);

// Seconds of `window` messages under way at once and the answer to them, each iteration. All of
// them leave from and arrive in data[bytes], as in OSU's test: equal content written twice.
std::vector<double> window_seconds(Communicator& comm, const View& data, int window,
                                   const PointToPoint& how);

}  // namespace trireme
