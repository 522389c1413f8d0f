// Connects the ranks of a run over the backend that its configuration asks for. Collective.
#pragma once

#include <memory>

#include "mpi/session/mpi_session.h"
#include "src/base/log.h"
#include "src/train/run/run_config.h"

namespace trireme {

// All ranks of a run, connected twice, so that neither kind of message queues behind the other.
struct World {
  std::unique_ptr<Communicator> data;     // tensors, in the order of streams
  std::unique_ptr<Communicator> control;  // what lies in the host's memory: metadata, agreement,
                                          // clocks, checkpoints
};

// As comm.backend and comm.tuning say, which rank 0 alone reads. Ends before the session.
World connect(const RunConfig& config, MpiSession& session, Log& log);

}  // namespace trireme
