#include "mpi/shm/shm_transport.h"

#include "mpi/collective/algorithms.h"
#include "mpi/shm/inbox.h"
#include "mpi/shm/outbox.h"
#include "mpi/shm/shm_algorithms.h"

namespace trireme {
namespace {

// Ids of sends are even and those of receives odd.
class ShmTransport : public Transport {
 public:
  explicit ShmTransport(std::unique_ptr<ShmGroup> group)
      : Transport(group->members()), group_(std::move(group)), outbox_(*group_), inbox_(*group_) {}

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override {
    return 2 * outbox_.start(data, bytes, to, tag);
  }
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override {
    return 2 * inbox_.start(data, bytes, from, tag) + 1;
  }
  TransferId start_recv_of_any_length(void* data, std::int64_t, std::int64_t room, int from,
                                      int tag) override {
    return 2 * inbox_.start_of_any_length(data, room, from, tag) + 1;
  }
  bool finished(TransferId id) override {
    return id % 2 == 0 ? outbox_.finished(id / 2) : inbox_.finished(id / 2);
  }
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override;
  void check_peers() override { group_->check_peers(); }

  std::unique_ptr<Algorithms> make_algorithms() override { return make_shm_algorithms(*group_); }
  MemorySource* memory() override { return &group_->node().arena(); }

  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override {
    return std::make_unique<ShmTransport>(group_->split(members));
  }

 private:
  std::unique_ptr<ShmGroup> group_;
  Outbox outbox_;
  Inbox inbox_;
};

void ShmTransport::cancel_all() noexcept {
  inbox_.give_up();
  outbox_.withdraw_all();
  group_->revoke();
}

void ShmTransport::pause(std::chrono::microseconds limit) {
  group_->node().sleep(limit, [this] {
    const bool moved = outbox_.progress();
    return inbox_.progress() || moved || group_->stirred();
  });
}

}  // namespace

std::unique_ptr<Transport> make_shm_transport(Communicator& host_group, const ShmOptions& options) {
  auto node = std::make_shared<ShmNode>(host_group, options);
  return std::make_unique<ShmTransport>(ShmGroup::of_node(std::move(node), host_group));
}

}  // namespace trireme
