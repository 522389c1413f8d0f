// MpiNative calls MPI's own operations on MPI_COMM_WORLD, on the caller's thread. `trireme bench
// coll|p2p --peer mpi` compares the transports with them. They have no deadline and are not
// recorded. Collective operations block, and every rank makes the same calls; if `send` is empty,
// the operation is MPI's in-place form on `recv`. MPI counts in int and has no bfloat16, which can
// be moved but not reduced.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

class MpiSession;

class MpiNative {
 public:
  // Throws ConfigError if this process was started without MPI. The session outlives this object.
  explicit MpiNative(const MpiSession& session);

  static bool can_reduce(DType dtype) { return dtype != DType::bf16 && dtype != DType::f16; }

  // Sets recv[count] to the reduction of the ranks' send[count].
  void all_reduce(ConstView send, View recv, ReduceOp op);
  // send[size * n], recv[n]. In place, the n results are at the start of recv[size * n].
  void reduce_scatter(ConstView send, View recv, ReduceOp op);
  // send[n], recv[size * n]. In place, this rank's n elements are at rank * n.
  void all_gather(ConstView send, View recv);
  // send[size * n], recv[size * n]. Calls MPI_Alltoallv with equal counts.
  void all_to_all(ConstView send, View recv);
  void broadcast(View data, int root);
  void barrier();

  void send(ConstView data, int peer);
  void recv(View data, int peer);
  // `count` messages in flight at once, all from or into the same data; return when all have ended.
  void send_window(ConstView data, int count, int peer);
  void recv_window(View data, int count, int peer);

 private:
  int size_ = 0;
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

}  // namespace trireme
