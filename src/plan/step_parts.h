// Computes a StepTime together with its intermediate results, which --explain shows. Pure
// functions.
#pragma once

#include "src/plan/pipeline_cost.h"
#include "src/plan/step_time.h"

namespace trireme {

// StepParts holds the intermediate results. Times are in seconds.
struct StepParts {
  double layers = 0;  // transformer blocks per stage
  BlockCost block;
  HeadCost head;
  double teacher = 0;      // seconds of the last stage per micro-batch, with distillation
  double transfer = 0;     // seconds of a stage per micro-batch
  double parameters = 0;   // on the rank that holds most
  double accumulated = 0;  // parameters among them whose gradients every micro-batch adds to
  StagePass pass;          // one micro-batch in one stage
  PipelineTime pipeline;
  double gradient_bytes = 0;   // reduced per step
  double gradient_whole = 0;   // seconds if nothing were hidden
  double parameter_bytes = 0;  // gathered per step
  double parameter_whole = 0;
  StepTime time;
};

StepParts step_parts(const PlanWork& work, const PlanLayout& layout, BubbleMethod method,
                     const CheckpointStall& stall);

}  // namespace trireme
