// Passes a secret from one rank of a host to the others through memory that has no name and is
// wiped as soon as they have copied it. Nothing of it crosses the network or lies in a file system.
#pragma once

#include <optional>

#include "mpi/communicator.h"
#include "src/keys/secret.h"

namespace trireme {

// Collective. On the first rank of each host, `secret` [bytes] is what to pass on; other ranks pass
// nothing. Every rank returns a copy of its host's secret. Throws PolicyError on all ranks if the
// ranks of a host can't share memory (other users, or PID namespaces).
Secret share_on_host(Communicator& comm, std::optional<Secret> secret, std::size_t bytes);

// Returns the first rank on the host of `rank`.
int first_on_host(const Communicator& comm, int rank);

}  // namespace trireme
