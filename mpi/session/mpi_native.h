// MpiNative: MPI's own blocking collectives on all ranks of MPI_COMM_WORLD, on the caller's thread:
// what `trireme bench coll --peer mpi` compares the transports with. No deadline, no records.
// Where `send` is empty the operation is MPI's in-place form on `recv`. Every rank calls the same.
// MPI counts in int and has no bfloat16: the latter can be moved, not reduced.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

class MpiSession;

class MpiNative {
 public:
  // ConfigError where nobody started MPI. The session outlives this object.
  explicit MpiNative(const MpiSession& session);

  static bool can_reduce(DType dtype) { return dtype != DType::bf16; }

  // recv[count] = sum over the ranks' send[count].
  void all_reduce(ConstView send, View recv, ReduceOp op);
  // send[size * n], recv[n]; in place the n elements end at the start of recv[size * n].
  void reduce_scatter(ConstView send, View recv, ReduceOp op);
  // send[n], recv[size * n]; in place this rank's n elements stand at rank * n.
  void all_gather(ConstView send, View recv);
  // send[size * n], recv[size * n], through MPI_Alltoallv with equal counts.
  void all_to_all(ConstView send, View recv);
  void broadcast(View data, int root);
  void barrier();

 private:
  int size_ = 0;
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

}  // namespace trireme
