#include "mpi/collective/transport.h"

#include "mpi/collective/algorithms.h"

namespace trireme {

std::unique_ptr<Algorithms> Transport::make_algorithms() { return make_transfer_algorithms(); }

}  // namespace trireme
