// BusyWatch: whether this process got the cores that it asked for while a benchmark ran. Other
// programs on the machine make figures low and ratios meaningless, and nothing in the figures says
// so. The kernel counts for each thread how long it ran and how long it was ready to run without a
// core (proc(5), /proc/PID/schedstat). Made before the measurement; one thread.
#pragma once

#include <functional>
#include <string>

#include "mpi/communicator.h"
#include "src/app/app_context.h"

namespace trireme {

class BusyWatch {
 public:
  BusyWatch();

  // The part of the wanted processor time that this process waited for, from 0 to 1; 0 where the
  // kernel does not count.
  double waiting_part() const;

 private:
  struct Times {
    double ran = 0;  // seconds, of all threads
    double waited = 0;
  };
  static Times now();

  Times begin_;
};

// Empty below kBusyPart.
inline constexpr double kBusyPart = 0.1;
std::string busy_warning(double waiting_part);

// Runs the benchmark and warns on standard error, for the rank that waited longest, if the machine
// was busy. Collective where there is a session.
void run_watched(AppContext& context, const std::function<void()>& benchmark);

}  // namespace trireme
