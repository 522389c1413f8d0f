// Measures two ranks of a group that send to each other, as OSU's benchmarks do. Both call the same
// function, with `sends` true on one of them. Other ranks of the group may do the same at the same
// time. The rank that sends first gets the times, and the other one zeros.
#pragma once

#include <vector>

#include "mpi/communicator.h"

namespace trireme {

class MpiNative;

struct PointToPoint {
  int peer = 0;
  bool sends = false;
  int warmup = 0;
  int iterations = 1;
  // u32 [1], in memory of the kind that is measured, for the answers to windows of messages; empty
  // for memory of the host.
  View answer = {};
};

// Returns for each iteration the seconds of a message one way, half of a round trip. out and in: u8
// [bytes]. They may be the same memory; then each message carries what the last one brought.
std::vector<double> latency_seconds(Communicator& comm, const ConstView& out, const View& in,
                                    const PointToPoint& how);
// The same with MPI_Send and MPI_Recv.
std::vector<double> latency_seconds(MpiNative& mpi, const ConstView& out, const View& in,
                                    const PointToPoint& how);

// Returns for each iteration the seconds of `window` messages in flight at once and the answer to
// them. All messages are sent from and received into data, u8 [bytes], as in OSU's test.
std::vector<double> window_seconds(Communicator& comm, const View& data, int window,
                                   const PointToPoint& how);
// The same with MPI_Isend, MPI_Irecv and MPI_Waitall.
std::vector<double> window_seconds(MpiNative& mpi, const View& data, int window,
                                   const PointToPoint& how);

}  // namespace trireme
