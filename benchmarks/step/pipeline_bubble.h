// PipelineBubble measures the fraction of time that pipeline stages were idle in real steps, and
// compares it with the simulation, given the average cost of each kind of step and of a transfer.
// Owned by a benchmark; used by one thread.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "src/device/pool.h"
#include "src/parallel/pipeline/pipeline_runner.h"

namespace trireme {

class PipelineBubble {
 public:
  PipelineBubble(PipelineSchedule schedule, const PipelineShape& shape);

  // Records the timings of one training step on this rank.
  void add(const PipelineRunner::Timings& timings);

  // Fractions of idle time, 0..1, over all stages, from the start of the first forward to the end
  // of the last backward: medians over the steps.
  struct Fractions {
    double measured = 0;
    double predicted = 0;  // simulated with the mean cost of each kind of step
    double replayed = 0;   // simulated with the measured cost of every single step
  };
  // Returns the result for the pipeline of these ranks, which must have added the same steps.
  // Collective.
  Fractions fractions(Communicator& pp, double transfer_seconds) const;

 private:
  using StageRows = std::vector<const double*>;  // one row per stage, for the same training step
  double measured(const StageRows& stages) const;
  double predicted(const StageRows& stages, double transfer_seconds) const;
  double replayed(const StageRows& stages, double transfer_seconds) const;

  PipelineShape shape_;
  PipelineSteps steps_;
  std::size_t width_;  // values per training step
  // [steps, width_]: seconds; seconds computing; seconds of a tie; forward, input and weight
  // seconds by chunk; seconds of every step of the schedule
  std::vector<double> rows_;
};

// Returns the seconds that `bytes` take from a stage to the next one, which waits for them: half a
// round trip, the median of the slowest of the pairs 0 and 1, 2 and 3, ..., all at the same time.
// pool: for memory that ranks exchange. Collective.
double measure_transfer(Communicator& pp, Pool& pool, std::int64_t bytes);

}  // namespace trireme
