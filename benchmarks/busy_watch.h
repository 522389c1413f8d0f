// BusyWatch finds out whether this process got the cores that it asked for while a benchmark ran.
// Other programs on the machine lower the results and distort ratios without leaving a trace in
// them. The kernel counts for each thread how long it ran and how long it was ready to run without
// a core (proc(5), /proc/PID/schedstat). Construct it before the measurement; use it in one thread.
#pragma once

#include <string>

namespace trireme {

class BusyWatch {
 public:
  BusyWatch();

  // Returns the fraction of the wanted processor time that this process waited for, from 0 to 1; 0
  // if the kernel does not count.
  double waiting_part() const;

 private:
  struct Times {
    double ran = 0;  // seconds, summed over all threads
    double waited = 0;
  };
  static Times now();

  Times begin_;
};

// The text is empty if waiting_part is below kBusyPart.
inline constexpr double kBusyPart = 0.1;
std::string busy_warning(double waiting_part);

// Counts the calling thread, which is about to end, for every BusyWatch. Without it, a thread that
// ends before the measurement does is not counted.
void count_ending_thread();

// Prints the warning on standard error if there is one, after what standard output holds.
void warn_if_busy(double waiting_part);

}  // namespace trireme
