// Backend is the choice of the transport that carries the data of a run (comm.backend, --backend).
// Plain values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class Backend {
  automatic,     // the best one for the placement of the ranks
  mpi,           // MPI's point-to-point calls; works everywhere, the reference for the others
  shm,           // shared memory; needs all ranks on one host
  ucx,           // UCX's messages, over RDMA if the fabric has it, else over TCP
  hierarchical,  // shared memory inside hosts, ucx between them
};

std::string_view name_of(Backend backend);
// Returns the names in the order above: "auto", "mpi", ...
std::vector<std::string> backend_names();
// Throws ConfigError for any other name.
Backend parse_backend(std::string_view name);

}  // namespace trireme
