#include "mpi/hierarchy/hierarchical_transport.h"

#include <algorithm>

#include "mpi/hierarchy/hierarchical_algorithms.h"
#include "src/base/check.h"

namespace trireme {

std::unique_ptr<Transport> make_hierarchical_transport(std::unique_ptr<Transport> local,
                                                       std::unique_ptr<Transport> network) {
  return std::make_unique<HierarchicalTransport>(std::move(local), std::move(network));
}

HierarchicalTransport::HierarchicalTransport(std::unique_ptr<Transport> local,
                                             std::unique_ptr<Transport> network)
    : Transport(network->members()),
      local_(std::move(local)),
      network_(std::move(network)),
      layout_(layout_of(network_->members().hosts(), network_->rank())),
      local_numbers_(static_cast<std::size_t>(network_->size()), -1) {
  check((local_ == nullptr ? 1 : local_->size()) == layout_.per_host(),
        "the local transport connects the ranks of this host");
  for (int i = 0; i < layout_.per_host(); ++i) {
    local_numbers_[static_cast<std::size_t>(layout_.local[static_cast<std::size_t>(i)])] = i;
  }
  if (layout_.is_regular && layout_.per_host() > 1) {
    across_ = network_->split_off(layout_.across);
  }
}

// Ids of transfers on the local transport become even, those on the network odd.
TransferId HierarchicalTransport::note(TransferId id, bool is_local) {
  ++(is_local ? local_under_way_ : network_under_way_);
  return 2 * id + (is_local ? 0 : 1);
}

TransferId HierarchicalTransport::start_send(const void* data, std::int64_t bytes, int to,
                                             int tag) {
  const int local = local_number(to);
  return local >= 0 ? note(local_->start_send(data, bytes, local, tag), true)
                    : note(network_->start_send(data, bytes, to, tag), false);
}

TransferId HierarchicalTransport::start_recv(void* data, std::int64_t bytes, int from, int tag) {
  const int local = local_number(from);
  return local >= 0 ? note(local_->start_recv(data, bytes, local, tag), true)
                    : note(network_->start_recv(data, bytes, from, tag), false);
}

TransferId HierarchicalTransport::start_recv_of_any_length(void* data, std::int64_t bytes,
                                                           std::int64_t room, int from, int tag) {
  const int local = local_number(from);
  return local >= 0 ? note(local_->start_recv_of_any_length(data, bytes, room, local, tag), true)
                    : note(network_->start_recv_of_any_length(data, bytes, room, from, tag), false);
}

bool HierarchicalTransport::finished(TransferId id) {
  const bool is_local = id % 2 == 0;
  if (!(is_local ? local_ : network_)->finished(id / 2)) {
    return false;
  }
  --(is_local ? local_under_way_ : network_under_way_);
  return true;
}

void HierarchicalTransport::cancel_all() noexcept {
  network_->cancel_all();
  if (local_ != nullptr) {
    local_->cancel_all();
  }
  if (across_ != nullptr) {
    across_->cancel_all();
  }
}

// A sleep in one transport is not ended by the other, so it is short while both have transfers
// under way.
void HierarchicalTransport::pause(std::chrono::microseconds limit) {
  constexpr std::chrono::microseconds kShort{50};
  if (network_under_way_ == 0 && local_ != nullptr) {
    local_->pause(limit);
  } else {
    network_->pause(local_under_way_ == 0 ? limit : std::min(limit, kShort));
  }
}

void HierarchicalTransport::check_peers() {
  network_->check_peers();
  if (local_ != nullptr) {
    local_->check_peers();
  }
}

std::unique_ptr<Algorithms> HierarchicalTransport::make_algorithms() {
  return make_hierarchical_algorithms(*this);
}

std::unique_ptr<Transport> HierarchicalTransport::split_off(const std::vector<int>& members) {
  std::vector<int> here;
  for (const int member : members) {
    if (local_number(member) >= 0) {
      here.push_back(local_number(member));
    }
  }
  std::unique_ptr<Transport> local;
  if (local_ != nullptr) {
    local = local_->split_off(here);
  }
  // Every rank of the group takes part, even if its new group is all on its own host.
  std::unique_ptr<Transport> network = network_->split_off(members);
  if (local != nullptr && here.size() == members.size()) {
    return local;
  }
  return make_hierarchical_transport(here.size() == 1 ? nullptr : std::move(local),
                                     std::move(network));
}

}  // namespace trireme
