// Every operation of a communicator with every kind of buffer, as something that can be run again
// and again: what the ranks of fault_ranks.cc are in the middle of when one of them dies. An
// operation belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "src/device/pool.h"

namespace trireme {

struct FaultCase {
  std::string name;  // "all_reduce/large"
  std::string operation;
  std::int64_t elements_per_rank = 0;
  bool own_memory = false;  // buffers of the communicator's own memory
};

// `own_memory`: whether the communicator has memory of its own to begin with.
std::vector<FaultCase> operations_to_disturb(bool own_memory);

class FaultOperation {
 public:
  // `hub`: the rank that all others send to, or receive from. The group outlives the operation.
  FaultOperation(const FaultCase& fault_case, Communicator& group, int hub);
  // Once; waits.
  void run();

 private:
  void send_to_hub();
  void receive_from_hub();

  std::string operation_;
  Communicator& group_;
  int hub_;
  Pool pool_;
  Buffer data_;
  Buffer other_;
  std::int32_t token_ = 0;
};

}  // namespace trireme
