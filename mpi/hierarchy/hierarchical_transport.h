// HierarchicalTransport connects a group that spans hosts. Transfers inside the host travel over
// `local`, others over `network`, both of which it owns. If the placement of ranks is regular,
// collective operations work inside hosts first (hierarchical_algorithms.h). Thread rule:
// transport.h.
#pragma once

#include "mpi/collective/transport.h"
#include "mpi/hierarchy/host_layout.h"

namespace trireme {

// `network` connects the whole group, and `local` the ranks of this host in the same order; `local`
// is null if this rank is alone on its host. Collective over the group.
std::unique_ptr<Transport> make_hierarchical_transport(std::unique_ptr<Transport> local,
                                                       std::unique_ptr<Transport> network);

class HierarchicalTransport : public Transport {
 public:
  HierarchicalTransport(std::unique_ptr<Transport> local, std::unique_ptr<Transport> network);

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override;
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override;
  TransferId start_recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room, int from,
                                      int tag) override;
  bool finished(TransferId id) override;
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override;
  void check_peers() override;

  std::unique_ptr<Algorithms> make_algorithms() override;
  MemorySource* memory() override { return local_ == nullptr ? nullptr : local_->memory(); }
  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override;

  const HostLayout& layout() const { return layout_; }
  // The algorithms use these. local() is null if this rank is alone on its host; across() is null
  // in that case and if the placement is not regular.
  Transport* local() const { return local_.get(); }
  Transport* across() const { return across_.get(); }

 private:
  // Returns the peer's number on the local transport, or -1 if it is on another host.
  int local_number(int rank) const { return local_numbers_[static_cast<std::size_t>(rank)]; }
  TransferId note(TransferId id, bool is_local);

  std::unique_ptr<Transport> local_;
  std::unique_ptr<Transport> network_;
  HostLayout layout_;
  std::vector<int> local_numbers_;     // by rank
  std::unique_ptr<Transport> across_;  // the ranks of the same local number, one per host
  int local_under_way_ = 0;
  int network_under_way_ = 0;
};

}  // namespace trireme
