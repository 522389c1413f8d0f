// Finds the factors of the terms of predictions that make them fit measurements. A pure function.
#pragma once

#include <vector>

namespace trireme {

// FitPenalty holds the weights of two penalties by that of one row's squared error: for factors
// that differ from their mean, and for a mean that differs from 1. Without them, a few rows would
// not determine as many factors.
struct FitPenalty {
  double spread = 1;
  double mean = 0.02;
};

// rows: the terms of each prediction, [rows][factors], by the time that was measured. Returns the
// factors, none below 0, with which the terms of each row add up to 1 as nearly as possible: least
// squares of the relative errors, where rows with an error above 4 % count less, as in Huber's
// estimator. Without rows, all factors are 1.
std::vector<double> fit_to_ones(const std::vector<std::vector<double>>& rows, int factors,
                                const FitPenalty& penalty);

}  // namespace trireme
