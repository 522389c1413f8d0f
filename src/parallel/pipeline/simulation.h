// PipelineSimulation: when every step of a schedule starts and ends, if each piece of the model
// takes a given time. Pure functions: for tests, pictures and the planner. A step starts when its
// rank is free and its input has arrived; sending costs the sender nothing; a rank's memory of what
// was sent to it is without limit.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

// Seconds that one micro-batch takes.
struct StageCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
};

struct PipelineCosts {
  std::vector<StageCosts> stages;  // by virtual stage
  double transfer = 0;             // seconds from the end of a step to the next rank's having it
  double tie = 0;                  // seconds
  // If given, what every single step takes, by stage and in its order, in place of the above but
  // for the transfer: what has been measured, run again.
  std::vector<std::vector<double>> steps;
};

// The same for every virtual stage.
PipelineCosts equal_costs(const PipelineShape& shape, const StageCosts& each, double transfer = 0);

struct TimedStep {
  PipelineStep step;
  double start = 0;  // seconds since the schedule's start
  double end = 0;
};

struct PipelineSimulation {
  std::vector<std::vector<TimedStep>> stages;
  double seconds = 0;        // until the last stage has ended
  std::vector<double> busy;  // seconds, by stage
  // By stage: the most pairs of chunk and micro-batch that were between the start of their forward
  // and the end of their backward (or of the weights' part of it) at one time.
  std::vector<std::int64_t> peak_live;

  // Seconds that the stage is idle: the bubble.
  double bubble(int stage) const { return seconds - busy.at(static_cast<std::size_t>(stage)); }
  // The idle part of all ranks' time, 0..1; and what is idle as a part of what is busy, which the
  // literature gives, as in (p-1)/m for 1f1b.
  double bubble_fraction() const;
  double bubble_of_ideal() const;
};

// InternalError, with what each stuck stage waits for, for steps that wait for each other.
PipelineSimulation simulate(const PipelineSteps& steps, const PipelineShape& shape,
                            const PipelineCosts& costs);

// What the steps of one rank cost on average, by chunk: to predict a run from another. A backward
// that was not split counts as gradient of the input. Of a chunk without steps: 0.
std::vector<StageCosts> mean_costs(const std::vector<TimedStep>& timeline, int chunks);

// Whether a step of this kind gives the gradient that the virtual stage before it waits for.
constexpr bool sends_gradient(PipelineStep::Kind kind) {
  return kind == PipelineStep::Kind::backward || kind == PipelineStep::Kind::backward_input;
}

}  // namespace trireme
