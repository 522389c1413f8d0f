// Connects the ranks of a run over the backend that its configuration asks for. Collective.
#pragma once

#include <memory>

#include "mpi/session/mpi_session.h"
#include "src/base/log.h"
#include "src/train/run/run_config.h"

namespace trireme {

// comm.backend and comm.tuning, which rank 0 alone reads. Ends before the session.
std::unique_ptr<Communicator> connect(const RunConfig& config, MpiSession& session, Log& log);

}  // namespace trireme
