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
  double kilowatt_hours = 0;    // of the whole run, with the site's overhead
  double price = 0;             // of nodes and energy; 0 if unknown
  double co2_kilograms = 0;     // 0 if unknown
};

// parameters: of the whole model. seconds: of a step without checkpoints. steps: of the run. nodes:
// that the layout occupies.
struct RunSize {
  double parameters = 0;
  double seconds = 0;
  double steps = 0;
  double nodes = 1;
  std::int64_t ranks = 1;
};
Outlook outlook(const Cluster& cluster, const RunSize& size);

// Returns the interval between checkpoints that loses least time (Daly, 2006, equation 37), in
// seconds: sqrt(2 c M) (1 + sqrt(c/2M)/3 + c/18M) - c for a save of c < 2M, otherwise M.
double daly_interval(double save_seconds, double mtbf_seconds);

}  // namespace trireme
