// SelfCommunicator: the group of one rank. Every operation has finished when its call returns;
// there is nobody to send to. For runs without a launcher, and for groups that a layout makes
// trivial.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

class SelfCommunicator : public Communicator {
 public:
  SelfCommunicator();

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& host(int rank) const override;

  using Communicator::all_reduce;
  Pending all_reduce(ConstView from, View into, ReduceOp op) override;
  Pending reduce_scatter(View data, ReduceOp op) override;
  Pending all_gather(View data) override;
  Pending all_to_all(ConstView send, std::span<const std::int64_t> send_counts, View recv,
                     std::span<const std::int64_t> recv_counts) override;
  Pending broadcast(View data, int root) override;
  Pending send(ConstView data, int to, int tag) override;
  Pending recv(View data, int from, int tag) override;
  Pending barrier() override;

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder) override {}
  void set_deadline(std::chrono::duration<double>) override {}

 private:
  std::string host_;
};

}  // namespace trireme
