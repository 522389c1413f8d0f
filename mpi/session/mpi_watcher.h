// MpiWatcher is the Inquiry among the ranks of MPI_COMM_WORLD. A thread of each rank polls a
// communicator of its own every 100 ms and answers even while all other threads hang: only a
// stopped process or a lost host gives no answer. Owned by the session: all ranks make it once MPI
// runs, and it ends before MPI. After an MPI error, this rank does not answer any more.
#pragma once

#include <memory>

#include "mpi/watch/flight_recorder.h"
#include "mpi/watch/inquiry.h"

namespace trireme {

class MpiWatcher : public Inquiry {
 public:
  // The recorder outlives the watcher. Collective.
  explicit MpiWatcher(FlightRecorder& recorder);
  ~MpiWatcher() override;
  MpiWatcher(const MpiWatcher&) = delete;
  MpiWatcher& operator=(const MpiWatcher&) = delete;

  std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                               std::chrono::milliseconds patience) override;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace trireme
