// Fits the calibration of a cluster to steps that were measured on it, part by part. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "src/plan/cluster_file.h"
#include "src/plan/measured_step.h"

namespace trireme {

// Returns the prediction for a step on a cluster, without checkpoints.
StepTime predicted_step(const Cluster& cluster, const MeasuredStep& step);

// CalibrationRow compares one measured step with its prediction.
struct CalibrationRow {
  std::string name;
  StepSplit measured;
  StepSplit predicted;
  // Relative error of the predicted time of a step: -0.1 if it is 10 % too short. Waits for data
  // and stalls of saves do not count.
  double error = 0;
  // The error of a prediction by a fit to all other steps; that of the fit if there is no other.
  double error_left_out = 0;
};

struct CalibrationFit {
  Cluster cluster;  // with its calibration and residual_percent
  std::vector<CalibrationRow> rows;
  // By key of the cluster file, such as "calibration.tensor": how many steps the factor was fitted
  // to. Keys that no step says anything about are missing, and their factors stay 1.
  std::map<std::string, int> fitted_to;
};

// Fits the factors of `calibration` to the steps, whatever they were before, and sets
// residual_percent to the mean of the absolute errors that predictions of left-out steps have.
// steps: at least one.
CalibrationFit fit_calibration(const Cluster& cluster, const std::vector<MeasuredStep>& steps);

}  // namespace trireme
