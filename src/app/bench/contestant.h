// Contestant: one way of running a collective operation, timed in turns with others on the same
// buffers. A transport of ours works in place, so that its out-of-place form is a copy of what this
// rank gives and the operation, both timed; all_to_all is the other way round. MPI's own operations
// have both forms. Every rank calls the same.
//
// Buffers hold the whole array (CollectiveSize::elements) on every rank; this rank's block stands
// at its place in it.
#pragma once

#include <memory>

#include "mpi/session/mpi_native.h"
#include "src/app/bench/collective.h"

namespace trireme {

struct CollectiveTask {
  Collective op = Collective::all_reduce;
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
};

class Contestant {
 public:
  virtual ~Contestant() = default;
  // `other` is of the same size; all_to_all uses it.
  virtual void in_place(const View& data, const View& other) = 0;
  virtual void out_of_place(const View& from, const View& to) = 0;
};

// The communicator, the object, outlives the contestant.
std::unique_ptr<Contestant> make_contestant(Communicator& comm, const CollectiveTask& task);
std::unique_ptr<Contestant> make_contestant(MpiNative& mpi, const CollectiveTask& task, int rank,
                                            int size);

}  // namespace trireme
