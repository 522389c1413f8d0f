// Says why a training run stopped before its last step. A pure function, except that it reads the
// environment.
#pragma once

#include <string>

#include "src/train/training.h"

namespace trireme {

// Precondition: the run has not finished.
std::string stop_message(const TrainingOutcome& outcome);

}  // namespace trireme
