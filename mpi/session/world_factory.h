// WorldFactory connects all ranks over a backend for host memory. Made and used by MpiSession;
// every call is collective over the ranks of MPI_COMM_WORLD. Backends are transports below one
// QueuedCommunicator. NCCL has communicators of its own and is connected by make_nccl_world()
// (nccl_world.h).
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

// Called once, on rank 0, for a backend that had to be replaced.
using Warn = std::function<void(const std::string&)>;

class WorldFactory {
 public:
  // `control` connects all ranks over MPI. It and the objects that `warn` refers to outlive the
  // factory; those that `watch` refers to outlive the communicators.
  WorldFactory(Communicator& control, Warn warn, const Watch& watch)
      : control_(control),
        hosts_(control.members().hosts()),
        warn_(std::move(warn)),
        watch_(watch) {}

  // For auto, uses shared memory if all ranks are on one host, else the hierarchy; if a part of
  // these is not available, uses what is, with a warning. With auto, operations and sizes in
  // `tuning` go over the backends named there. Throws ConfigError if a backend that was named can't
  // connect these ranks.
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
