// Agreement among ranks: what one rank finds out, all ranks act upon. Each call is collective.
#pragma once

#include <functional>
#include <string>

#include "mpi/communicator.h"

namespace trireme {

// Runs on rank 0; every rank returns its text, or throws the same error as rank 0.
std::string run_on_root(Communicator& comm, const std::function<std::string()>& work);

// "" if every rank passes ""; else the texts of those that do not, each with its rank and host.
std::string gather_faults(Communicator& comm, const std::string& fault);

}  // namespace trireme
