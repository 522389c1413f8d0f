// SelfCommunicator: the group of one rank. Every operation has finished when its call returns;
// there is nobody to send to. For runs without a launcher, and for groups that a layout makes
// trivial.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

// Runs an operation of a group of one rank: copies what this rank gives to where it receives, in
// the order of the stream.
Pending run_alone(const OperationRequest& request);

class SelfCommunicator : public Communicator {
 public:
  SelfCommunicator();

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder) override {}
  void set_deadline(std::chrono::duration<double>) override {}

 private:
  Pending start(const OperationRequest& request) override { return run_alone(request); }
};

}  // namespace trireme
