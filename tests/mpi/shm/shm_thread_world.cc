#include "tests/mpi/shm/shm_thread_world.h"

#include "mpi/collective/queued_communicator.h"
#include "mpi/shm/shm_transport.h"

namespace trireme {
namespace {

constexpr std::int64_t kReserve = std::int64_t{1} << 30;

}  // namespace

ShmThreadWorld::ShmThreadWorld(int size)
    : size_(size), world_(size, std::vector<std::string>(static_cast<std::size_t>(size), "node")) {}

void ShmThreadWorld::run(const std::function<void(Communicator&)>& rank_function) {
  world_.run([&](Communicator& host_group) {
    QueuedCommunicator comm(make_shm_transport(host_group, {kReserve, &table_}), "world");
    rank_function(comm);
  });
}

}  // namespace trireme
