// Says what a run has measured of its own steps, in the parts and with the shapes that the planner
// predicts.
#pragma once

#include "mpi/communicator.h"
#include "src/plan/measured_step.h"
#include "src/train/prediction/step_timings.h"
#include "src/train/run/layout.h"

namespace trireme {

// timings: of this rank; all ranks have done as many steps, at least one that counts.
// memory_bytes: of the rank that has most. Collective.
MeasuredStep measured_run(const RunConfig& config, const Layout& layout, const StepTimings& timings,
                          std::int64_t memory_bytes, Communicator& world);

}  // namespace trireme
