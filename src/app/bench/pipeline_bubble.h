// PipelineBubble: how much of their time the stages of the pipelines stood idle in steps that ran,
// and how much the simulation says they would, given what every kind of step and a transfer cost on
// average. Owned by a benchmark; one thread.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "src/device/pool.h"
#include "src/parallel/pipeline/pipeline_runner.h"

namespace trireme {

class PipelineBubble {
 public:
  PipelineBubble(PipelineSchedule schedule, const PipelineShape& shape);

  // After a step, its timings on this rank.
  void add(const PipelineRunner::Timings& timings);

  // Idle parts of all stages' time between the start of the first forward and the end of the last
  // backward, 0..1: medians over the steps.
  struct Fractions {
    double measured = 0;
    double predicted = 0;  // from the mean cost of every kind of step
    double replayed = 0;   // from what every single step cost
  };
  // Of the pipeline of these ranks, which have added the same steps. Collective.
  Fractions fractions(Communicator& pp, double transfer_seconds) const;

 private:
  using StageRows = std::vector<const double*>;  // of one training step
  double measured(const StageRows& stages) const;
  double predicted(const StageRows& stages, double transfer_seconds) const;
  double replayed(const StageRows& stages, double transfer_seconds) const;

  PipelineShape shape_;
  PipelineSteps steps_;
  std::size_t width_;  // numbers a step
  // [steps, width_]: seconds; computing; of a tie; f, b, w by chunk; of every step of the schedule
  std::vector<double> rows_;
};

// Seconds that `bytes` take from a stage to the next one, which waits for them: half of there and
// back, the median of the slowest of the pairs 0 and 1, 2 and 3, ..., all at the same time. pool:
// of what moves between ranks. Collective.
double measure_transfer(Communicator& pp, Pool& pool, std::int64_t bytes);

}  // namespace trireme
