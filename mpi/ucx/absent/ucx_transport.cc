// Replaces the UCX transport if UCX's development files are absent.
#include "mpi/ucx/ucx_transport.h"

namespace trireme {

std::unique_ptr<Transport> make_ucx_transport(Communicator&) {
  throw ConfigError(
      "this trireme was built without UCX: install libucx-dev and build again, or set "
      "comm.backend to auto, mpi or shm");
}

void check_ucx_here() {}

}  // namespace trireme
