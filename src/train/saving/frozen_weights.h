// Loads weights that a run never changes: those beside adapters, and those of a teacher. They exist
// as working copies alone, in the precision of the run, so that they are loaded in pieces.
#pragma once

#include <string>

#include "io/checkpoint/store.h"
#include "src/nn/parameter.h"

namespace trireme {

enum class FrozenWeights : std::uint8_t {
  declared,  // the parameters that the model declares as frozen
  all,       // those of a model of which nothing is trained
};

// Loads the working copies of these parameters from an opened step, which may be of any layout.
// Returns why that failed on this rank, or "". Throws ConfigError if the step has other tensors.
std::string load_frozen_weights(const StepFolder& step, const ParameterStore& store,
                                FrozenWeights which);

}  // namespace trireme
