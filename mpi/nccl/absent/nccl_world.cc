#include "mpi/nccl/nccl_world.h"

#include "src/base/error.h"

namespace trireme {

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator>,
                                              const NcclWorldOptions&) {
  throw ConfigError(nccl_trouble());
}

std::int64_t nccl_group_bytes(int) { return 0; }
std::int64_t nccl_transfer_bytes(int) { return 0; }
int nccl_version_code() { return 0; }

std::string nccl_version() { return "no NCCL"; }
std::string nccl_build_version() { return "no NCCL"; }
std::string nccl_trouble() {
  return "this program was built without NCCL: configure with the preset 'cuda'";
}

}  // namespace trireme
