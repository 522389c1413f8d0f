// MpiSession starts MPI, holds the world communicator, and ends MPI. There is one per process, made
// and ended by main(), whose only `try` is inside its scope: an error there is printed and handed
// to abort(). If the destructor runs because of an exception, it aborts the job, since a clean end
// would wait for ranks that never come. Communicators made from the world must end before the
// session.
//
// Without a launcher, MPI is not started and the world is one rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/launch_environment.h"
#include "mpi/nccl/nccl_world.h"
#include "mpi/session/mpi_watcher.h"
#include "mpi/session/world_factory.h"
#include "mpi/topology.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

class MpiSession {
 public:
  // Throws ConfigError if the launcher can't connect the ranks (see detect_launcher()).
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Returns all ranks over MPI, regardless of the run's own backend: for the start, for agreement
  // and for errors.
  Communicator& world();
  // Returns all ranks over a backend (world_factory.h). Collective, in the same order on all ranks.
  // The result must end before the session. On rank 0, `warn` is called for every part that had to
  // be replaced; without it, these warnings go to stderr.
  std::unique_ptr<Communicator> make_world(Backend backend, const Tuning& tuning = {},
                                           const Warn& warn = {});
  // Returns all ranks over NCCL, each with its CUDA device. Takes over a world of the same ranks
  // for its messages of the host; `options` need no watch (nccl_world.h). Collective; the result
  // must end before the session.
  std::unique_ptr<Communicator> make_device_world(std::unique_ptr<Communicator> control,
                                                  NcclWorldOptions options);
  Launcher launcher() const { return launcher_; }
  // places() has one entry per rank, in rank order, and is the same on every rank; place() is this
  // rank's.
  const std::vector<RankPlace>& places() const { return places_; }
  const RankPlace& place() const;
  // Return this rank's flight recorder, and the Watch for the communicators of this session.
  FlightRecorder& recorder() { return *recorder_; }
  Watch watch() { return {recorder_.get(), watcher_.get(), 0}; }
  // Returns "Open MPI v4.1.4 ..." or "none".
  std::string library_version() const;
  // Ends every rank of the job with this exit code: at once, or a second later if it is hang.
  [[noreturn]] void abort(ExitCode code);

 private:
  Launcher launcher_;
  int uncaught_at_start_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<MpiWatcher> watcher_;  // null without MPI
  std::unique_ptr<Communicator> world_;
  std::uint64_t worlds_ = 0;  // number of worlds made by make_world()
  std::vector<RankPlace> places_;
};

}  // namespace trireme
