// Reads what a run leaves in prediction.json (src/train/prediction).
#pragma once

#include <filesystem>

#include "src/plan/measured_step.h"

namespace trireme {

struct PredictionFile {
  MeasuredStep step;
  StepSplit predicted;  // by the cluster file that the run named
};

// run: a run's folder, or the file itself. Throws NotFound if there is none, and DataError that
// names the file if it is damaged.
PredictionFile read_prediction(const std::filesystem::path& run);

}  // namespace trireme
