#include "mpi/self_communicator.h"

#include "mpi/blocks.h"
#include "src/base/log.h"

namespace trireme {

SelfCommunicator::SelfCommunicator() : host_(host_name()) {}

const std::string& SelfCommunicator::host(int rank) const {
  check(rank == 0, "the group has one rank");
  return host_;
}

Pending SelfCommunicator::all_reduce(ConstView from, View into, ReduceOp) {
  copy_block(from, into);
  return {};
}
Pending SelfCommunicator::reduce_scatter(View, ReduceOp) { return {}; }
Pending SelfCommunicator::all_gather(View) { return {}; }
Pending SelfCommunicator::broadcast(View, int root) {
  check(root == 0, "the root is a rank of the group");
  return {};
}
Pending SelfCommunicator::send(ConstView, int, int) {
  check(false, "a peer is another rank of the group");
  return {};
}
Pending SelfCommunicator::recv(View, int, int) {
  check(false, "a peer is another rank of the group");
  return {};
}
Pending SelfCommunicator::barrier() { return {}; }

Pending SelfCommunicator::all_to_all(ConstView send, std::span<const std::int64_t> send_counts,
                                     View recv, std::span<const std::int64_t> recv_counts) {
  check_blocks(send, send_counts, recv, recv_counts, 1, 0);
  copy_block(send, recv);
  return {};
}

std::unique_ptr<Communicator> SelfCommunicator::split(int, int, std::string_view) {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace trireme
