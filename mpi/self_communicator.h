// SelfCommunicator is a group of one rank, for runs without a launcher and for groups that a layout
// reduces to one rank. Operations run at once on the caller's thread, or in the order of the stream
// that the call names. There is no peer to send to. Thread rule: communicator.h.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

// Runs an operation of a group of one rank: copies `from` to `into`, in the order of the stream.
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
