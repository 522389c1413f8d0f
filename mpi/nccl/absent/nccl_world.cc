#include "mpi/nccl/nccl_world.h"

#include "src/base/error.h"

namespace trireme {

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator>, Device, const Watch&) {
  throw ConfigError("this program was built without NCCL: configure with the preset 'cuda'");
}

std::string nccl_version() { return "no NCCL"; }

}  // namespace trireme
