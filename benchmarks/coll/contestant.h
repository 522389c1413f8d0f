// A Contestant is one way to run a collective operation, timed in turns with others on the same
// buffers. Our transports work in place, so their out-of-place form copies this rank's input and
// then runs the operation, and both are timed. For all_to_all it is the other way round. MPI's own
// operations have both forms. Every rank makes the same calls.
//
// Buffers hold the whole array (CollectiveSize::elements) on every rank, and this rank's part is at
// its place in it.
#pragma once

#include <memory>

#include "benchmarks/coll/collective.h"
#include "mpi/session/mpi_native.h"

namespace trireme {

struct CollectiveTask {
  Collective op = Collective::all_reduce;
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
};

class Contestant {
 public:
  virtual ~Contestant() = default;
  // `other` has the same size as `data`. Only all_to_all uses it.
  virtual void in_place(const View& data, const View& other) = 0;
  virtual void out_of_place(const View& from, const View& to) = 0;
};

// Our operations return when they have finished, or are queued on `stream`, on which the buffers'
// device works, and which is null for the CPU. The communicator and the stream must outlive the
// contestant.
std::unique_ptr<Contestant> make_contestant(Communicator& comm, const CollectiveTask& task,
                                            Stream* stream = nullptr);
std::unique_ptr<Contestant> make_contestant(MpiNative& mpi, const CollectiveTask& task, int rank,
                                            int size);

}  // namespace trireme
