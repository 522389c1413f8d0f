// FaultOperation runs one operation of a communicator with one kind of buffer, again and again. The
// ranks of fault_ranks.cc are in the middle of all of them when one rank dies. Used by one thread.
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
  bool own_memory = false;  // whether buffers are in the communicator's memory
};

// own_memory: whether the communicator has memory of its own.
std::vector<FaultCase> operations_to_disturb(bool own_memory);

class FaultOperation {
 public:
  // `hub`: the rank that all others send to, or receive from. The group outlives the operation.
  FaultOperation(const FaultCase& fault_case, Communicator& group, int hub);
  // Runs the operation once and waits for it.
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
