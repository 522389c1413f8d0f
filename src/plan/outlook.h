// What a whole run takes: checkpoints, failures, days, energy, money and carbon. Pure functions.
#pragma once

#include "src/plan/plan_layout.h"
#include "src/plan/step_time.h"

namespace trireme {

struct Outlook {
  double save_seconds = 0;      // of a checkpoint on disk, in the background
  double stall_seconds = 0;     // that training waits for a save
  double mtbf_seconds = 0;      // between failures of the job; 0 if none is expected
  double interval_seconds = 0;  // between saves (Young and Daly); 0 without failures
  double restart_seconds = 0;   // detection, relaunch and reading
  double goodput = 1;           // share of the time that makes progress which lasts
  double days = 0;              // of the whole run, at that goodput
  double busy = 1;              // share of that time in which devices compute
  double device_watts = 0;      // of a device on average
  double kilowatt_hours = 0;    // of the whole run, with the site's overhead
  double price = 0;             // of nodes and energy; 0 if unknown
  double co2_kilograms = 0;     // 0 if unknown
};

// parameters: of the whole model. seconds: of a step without checkpoints. steps: of the run. nodes:
// that the layout occupies. waiting: seconds of a step in which devices wait.
struct RunSize {
  double parameters = 0;
  double seconds = 0;
  double steps = 0;
  double nodes = 1;
  std::int64_t ranks = 1;
  double waiting = 0;
};
Outlook outlook(const Cluster& cluster, const RunSize& size);

// Returns the mean power of a device that computes for the share `busy` of the time and waits
// otherwise: idle_watts + busy x (watts - idle_watts). It waits within a step
// (StepTime::waiting()), for saves, and from a failure until training goes on; work that is done
// again is computing. If idle_watts is 0, hence unknown, the power is watts all the time, which is
// an upper bound.
double mean_device_watts(const Cluster& cluster, double busy);

// Returns the interval between checkpoints that loses least time (Daly, 2006, equation 37), in
// seconds: sqrt(2 c M) (1 + sqrt(c/2M)/3 + c/18M) - c for a save of c < 2M, otherwise M.
double daly_interval(double save_seconds, double mtbf_seconds);

}  // namespace trireme
