// One operation of the NCCL stand-in, which a stream of the simulated device advances step by step.
// A collective operation proceeds in turns: each rank copies a piece into its box, and once all
// have, each reads what it needs from all boxes (all-reduce and all-gather: a piece of every rank;
// reduce-scatter: every rank's part for this rank; broadcast: the root's piece).
#pragma once

#include <memory>

#include "src/device/sim/nccl_communicator.h"

namespace sim {

enum class CommunicationKind { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

class Communication {
 public:
  struct Arguments {
    CommunicationKind kind;
    const void* from = nullptr;
    void* to = nullptr;
    std::size_t bytes = 0;  // of the part of one rank
    ncclDataType_t type = ncclInt8;
    ncclRedOp_t reduction = ncclSum;
    int peer = 0;  // or root
  };

  explicit Communication(const Arguments& arguments) : arguments_(arguments) {}

  // Goes on as far as the other ranks allow. Returns whether the operation has finished.
  bool advance(Communicator& communicator);

 private:
  void send(Communicator& communicator);
  void receive(Communicator& communicator);
  void take_turns(Communicator& communicator);
  void post(Communicator& communicator, std::size_t piece) const;
  bool have_all_posted(Communicator& communicator) const;
  void take(Communicator& communicator, std::size_t piece) const;
  void reduce(Communicator& communicator, std::size_t piece) const;
  std::size_t longest_piece(const Communicator& communicator) const;
  CollectiveShape shape() const;

  Arguments arguments_;
  std::size_t at_ = 0;  // bytes that are done
  bool is_posted_ = false;
};

}  // namespace sim
