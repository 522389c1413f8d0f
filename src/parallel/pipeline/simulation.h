// PipelineSimulation is the time at which every step of a schedule starts and ends, if each piece
// of the model takes a given time. Pure functions, for tests, figures and the planner. A step
// starts when its rank is free and its input has arrived; sending costs the sender nothing, and a
// rank can buffer any number of received tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

// StageCosts are in seconds per micro-batch.
struct StageCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
};

struct PipelineCosts {
  std::vector<StageCosts> stages;  // by virtual stage
  double transfer = 0;  // seconds from the end of a step until its result is on the next rank
  double tie = 0;       // seconds
  // If given, the seconds of every single step, by stage and in its order, as measured. They
  // replace `stages` and `tie`, but not `transfer`.
  std::vector<std::vector<double>> steps;
};

// Returns the same costs for every virtual stage.
PipelineCosts equal_costs(const PipelineShape& shape, const StageCosts& each, double transfer = 0);

struct TimedStep {
  PipelineStep step;
  double start = 0;  // seconds since the schedule's start
  double end = 0;
};

struct PipelineSimulation {
  std::vector<std::vector<TimedStep>> stages;
  double seconds = 0;        // until the last stage ends
  std::vector<double> busy;  // seconds, by stage
  // By stage: the most pairs of chunk and micro-batch that were live at one time, that is, between
  // the start of their forward and the end of their backward (or of its weights' part).
  std::vector<std::int64_t> peak_live;

  // Returns the seconds in which the stage is idle: the bubble.
  double bubble(int stage) const { return seconds - busy.at(static_cast<std::size_t>(stage)); }
  // Return the idle fraction of all ranks' time, 0..1, and the ratio of idle to busy time, which
  // the literature uses, as in (p-1)/m for 1f1b.
  double bubble_fraction() const;
  double bubble_of_ideal() const;
};

// Throws InternalError if steps deadlock, with the step at which each stage is stuck.
PipelineSimulation simulate(const PipelineSteps& steps, const PipelineShape& shape,
                            const PipelineCosts& costs);

// Returns the mean costs of one rank's steps by chunk, to predict a run from another. A backward
// that was not split counts as backward_input. The costs of a chunk without steps are 0.
std::vector<StageCosts> mean_costs(const std::vector<TimedStep>& timeline, int chunks);

// Returns whether a step of this kind computes the gradient that the virtual stage before waits
// for.
constexpr bool sends_gradient(PipelineStep::Kind kind) {
  return kind == PipelineStep::Kind::backward || kind == PipelineStep::Kind::backward_input;
}

}  // namespace trireme
