// The intermediate results behind StepTime, from which --explain takes its numbers.
#pragma once

#include "src/plan/pipeline_cost.h"
#include "src/plan/step_time.h"

namespace trireme {

struct StepParts {
  double layers = 0;  // blocks of a stage
  BlockCost block;
  HeadCost head;
  double teacher = 0;      // of the last stage per micro-batch, with distillation
  double transfer = 0;     // of a stage per micro-batch
  double parameters = 0;   // of the rank that holds most
  double accumulated = 0;  // of these, whose gradients are added up in each micro-batch
  StagePass pass;          // of a stage, for a micro-batch
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
