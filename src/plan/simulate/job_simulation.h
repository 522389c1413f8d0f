// Simulates one draw of a training job, event by event: training, saves, faults, detection,
// exclusion, relaunch, load; spares and repairs; stragglers, maintenance and the queue. Pure: the
// result depends on the model and the faults alone.
//
//   train ... save ... train | fault
//                            |- detect -|- exclude -|- wait for nodes -|- relaunch -|- load -|
//                            train
//
// Faults that come before the ranks are up again lose further nodes or start the recovery anew. The
// causes are those of `trireme launch report` (slurm/journal/account.h), so that both can be
// compared.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/plan/simulate/job_faults.h"
#include "src/plan/simulate/job_model.h"

namespace trireme {

enum class SimulatedCause : std::uint8_t {
  start,
  load,
  train,       // steps whose result was kept, at full speed
  slow,        // what they took longer, because of stragglers or missing nodes
  redone,      // steps computed again
  checkpoint,  // time for which saving stops training
  detect,
  exclude,
  relaunch,
  wait,  // for nodes, the site or the queue
  maintenance,
  finish  // the end of a job after its last save
};
inline constexpr std::size_t kSimulatedCauses = 12;
std::string_view name_of(SimulatedCause cause);

struct SimulatedRun {
  double wall = 0;  // seconds
  std::array<double, kSimulatedCauses> seconds{};
  // Those that met the job; a fault of a node in repair does not.
  std::array<std::int64_t, kJobFaultKinds> faults{};
  std::int64_t launches = 0;
  std::int64_t from_memory = 0, from_disk = 0, from_nothing = 0;  // what launches resumed from
  std::int64_t waits = 0;                                         // for nodes
  double steps = 0;                                               // done and kept
  // In a simulation of a job with an end: whether it was reached.
  bool is_finished = false;

  double at(SimulatedCause cause) const { return seconds[static_cast<std::size_t>(cause)]; }
  // Returns the fraction of the wall time in which steps were trained that were kept.
  double goodput() const { return wall > 0 ? at(SimulatedCause::train) / wall : 0; }
};

SimulatedRun simulate_job(const JobModel& model, const JobFaults& faults);

}  // namespace trireme
