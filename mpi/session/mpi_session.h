// MpiSession: starts MPI, holds the world communicator, ends MPI. One a process, made and ended by
// main(), whose only `try` stands inside its scope: an error there is printed and handed to
// abort(). When the destructor runs because an exception passes through, it aborts the job: a clean
// end would wait for ranks that never come. Communicators made from the world must end before the
// session.
//
// Without a launcher there is no MPI: the world is one rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/launch_environment.h"
#include "mpi/session/mpi_watcher.h"
#include "mpi/session/world_factory.h"
#include "mpi/topology.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

class MpiSession {
 public:
  // ConfigError where the launcher can't connect the ranks (see detect_launcher).
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // All ranks over MPI, whatever the run's own backend is: for the start, for agreement and errors.
  Communicator& world();
  // All ranks over a backend (world_factory.h). Collective, in the same order on all ranks. Ends
  // before the session. `warn` hears, on rank 0, of parts that had to be replaced; without it they
  // are said on stderr.
  std::unique_ptr<Communicator> make_world(Backend backend, const Tuning& tuning = {},
                                           const Warn& warn = {});
  Launcher launcher() const { return launcher_; }
  // One entry a rank, in rank order, the same on every rank; and this rank's own.
  const std::vector<RankPlace>& places() const { return places_; }
  const RankPlace& place() const;
  // What this rank did last; and what the communicators of this session are watched with.
  FlightRecorder& recorder() { return *recorder_; }
  Watch watch() { return {recorder_.get(), watcher_.get(), 0}; }
  // "Open MPI v4.1.4 ..." or "none".
  std::string library_version() const;
  // Ends every rank of the job with this code, now.
  [[noreturn]] void abort(ExitCode code);

 private:
  Launcher launcher_;
  int uncaught_at_start_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<MpiWatcher> watcher_;  // null without MPI
  std::unique_ptr<Communicator> world_;
  std::uint64_t worlds_ = 0;  // made by make_world()
  std::vector<RankPlace> places_;
};

}  // namespace trireme
