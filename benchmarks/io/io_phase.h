// Runs a phase that all ranks take part in, between barriers, and combines their times.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "mpi/session/mpi_session.h"
#include "src/base/stopwatch.h"

namespace trireme {

// IoClock counts seconds from the same moment on all ranks: if they share a host, from one reading
// of its clock, else from the end of a barrier.
class IoClock {
 public:
  // Waits for all ranks. Collective.
  explicit IoClock(MpiSession& session);
  double seconds() const;

 private:
  double origin_ = 0;
};

// IoSpan is when a rank began and ended something, in seconds on the IoClock.
struct IoSpan {
  double begin = 0;
  double end = 0;
};

// Returns the time from the first rank's begin to the last rank's end. Collective.
double duration_of(const IoSpan& span, Communicator& comm);

}  // namespace trireme
