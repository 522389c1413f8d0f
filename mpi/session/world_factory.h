// WorldFactory: connects all ranks over a backend. Made and used by MpiSession; every call is
// collective over the ranks of MPI_COMM_WORLD. The backends of the host's memory are transports
// below one QueuedCommunicator; a library that brings communicators of its own, such as NCCL, joins
// in make().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/communicator.h"
#include "mpi/session/backend.h"
#include "mpi/session/tuning.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

// What a choice of backend found on its way: said once, on rank 0.
using Warn = std::function<void(const std::string&)>;

class WorldFactory {
 public:
  // `control`: all ranks over MPI. It and what `warn` refers to outlive the factory; what `watch`
  // refers to outlives the communicators.
  WorldFactory(Communicator& control, Warn warn, const Watch& watch)
      : control_(control),
        hosts_(control.members().hosts()),
        warn_(std::move(warn)),
        watch_(watch) {}

  // auto: shared memory where all ranks are of one host, else the hierarchy; where a part of that
  // is not to be had, what is, with a warning. With `tuning`, operations and sizes that it lists go
  // over the backend that it names. ConfigError where a backend that was named can't connect these
  // ranks.
  std::unique_ptr<Communicator> make(Backend backend, const Tuning& tuning);

 private:
  std::unique_ptr<Transport> make_one(Backend backend);
  std::unique_ptr<Transport> make_automatic();
  std::unique_ptr<Transport> make_tuned(const Tuning& tuning);
  std::unique_ptr<Transport> make_shm();
  std::unique_ptr<Transport> make_hierarchical();
  bool is_one_host() const;

  Communicator& control_;
  std::vector<std::string> hosts_;
  Warn warn_;
  Watch watch_;
};

}  // namespace trireme
