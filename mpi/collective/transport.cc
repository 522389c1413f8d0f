#include "mpi/collective/transport.h"

#include "mpi/collective/algorithms.h"

namespace trireme {

std::unique_ptr<Algorithms> Transport::make_algorithms() { return make_transfer_algorithms(); }

std::string describe_rank(const Transport& transport, int rank) {
  return fmt::format("rank {} (host {})", transport.world_rank(rank), transport.host(rank));
}

}  // namespace trireme
