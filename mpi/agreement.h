// Functions that make all ranks of a group act on what one of them finds out. Each call is
// collective and waits for the others.
#pragma once

#include <functional>
#include <string>

#include "mpi/communicator.h"

namespace trireme {

// Runs `work` on rank 0. Every rank returns its text, or throws rank 0's error, of the same class
// if that is ConfigError, DataError, NotFound, PolicyError, ResourceError or DeviceError and as
// IoError otherwise; std::bad_alloc becomes a ResourceError. `work` may throw Error, bad_alloc or
// filesystem_error only; the other ranks would wait for anything else until their deadline.
std::string run_on_root(Communicator& comm, const std::function<std::string()>& work);

// Returns "" if every rank passes ""; otherwise the texts of those that do not, each once, with its
// ranks and their hosts unless there is only one rank.
std::string gather_faults(Communicator& comm, const std::string& fault);

}  // namespace trireme
