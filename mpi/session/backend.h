// Backend: which transport carries the data of a run (comm.backend, --backend).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class Backend {
  automatic,     // the best for where the ranks stand
  mpi,           // MPI's point-to-point calls: works everywhere, the judge of the others
  shm,           // shared memory: all ranks on one host
  ucx,           // UCX's own: RDMA where the fabric has it, TCP elsewhere
  hierarchical,  // shared memory inside hosts, ucx between them
};

std::string_view name_of(Backend backend);
// The names, in the order above: "auto", "mpi", ...
std::vector<std::string> backend_names();
// ConfigError for a name not listed there.
Backend parse_backend(std::string_view name);

}  // namespace trireme
