// The fault points of a run in this folder and those below it, in the order in which a run passes
// them.
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kTrainingFaultSites = {
    FaultSite{"start.kernel", FaultSite::Kind::numbers,
              "each result of a kernel that the self-check compares"},
    FaultSite{"data.open", FaultSite::Kind::point,
              "each rank, when it has read the dataset's manifest"},
    FaultSite{"step.forward", FaultSite::Kind::point, "before the forward pass of a micro-batch"},
    FaultSite{"step.backward", FaultSite::Kind::point, "before the backward pass of a micro-batch"},
    FaultSite{"step.gradient", FaultSite::Kind::numbers,
              "the first gradient that the backward pass of a micro-batch completes"},
    FaultSite{"step.loss", FaultSite::Kind::numbers,
              "the loss of the first micro-batch of a step, on a last stage"},
    FaultSite{"step.optimizer", FaultSite::Kind::point, "before the optimizer changes weights"},
    FaultSite{"step.weights", FaultSite::Kind::numbers,
              "after the optimizer, on one parameter of the rank"},
    FaultSite{"step.evaluate", FaultSite::Kind::point,
              "before an evaluation, when its step is saved"},
    FaultSite{"step.end", FaultSite::Kind::point,
              "when a step is done, before it is logged or saved"},
    FaultSite{"finish.done", FaultSite::Kind::point,
              "rank 0, when all is saved, before DONE is written"},
};

}  // namespace trireme
