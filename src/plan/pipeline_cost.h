// The time that a pipeline needs for the micro-batches of a step. Pure functions; all times in
// seconds.
#pragma once

#include "src/parallel/pipeline/simulation.h"
#include "src/plan/step_time.h"

namespace trireme {

// StagePass is what the stages of a pipeline need for one micro-batch.
struct StagePass {
  double forward = 0;  // of a stage's blocks
  double backward = 0;
  double head_forward = 0;  // more on the last stage
  double head_backward = 0;
  double embedding_forward = 0;  // more on the first one
  double embedding_backward = 0;
  double teacher = 0;  // forward on the last stage, for which no other stage makes up
};

struct PipelineTime {
  double total = 0;
  double busy = 0;  // of the busiest stage
};

// Returns when each stage computes what, for the first micro-batches of a step: at most as many as
// in three rounds of the stages, after which a schedule repeats itself.
PipelineSimulation pipeline_timeline(const PlanLayout& layout, const StagePass& pass,
                                     bool balanced);

// balanced: the stages share the head's time equally.
PipelineTime pipeline_time(const PlanLayout& layout, const StagePass& pass, bool balanced,
                           BubbleMethod method);

}  // namespace trireme
