// Finds the factors of the terms of predictions that make them fit measurements. A pure function.
#pragma once

#include <vector>

namespace trireme {

// FactorPrior says how far the factors may lie from 1 before anything is measured, as standard
// deviations: each factor is 1 + a part that all share + its own part. Without it, a few rows would
// not determine as many factors.
struct FactorPrior {
  std::vector<double> own;  // [factors]
  double common = 0;
  double noise = 0.04;  // of the relative error of a row, by which the prior is weighed against it
};

// rows: the terms of each prediction, [rows][factors], by the time that was measured. Returns the
// factors, none below 0, with which the terms of each row add up to 1 as nearly as possible and as
// near to the prior as that allows: least squares of the relative errors, where rows with an error
// above 2 % count less, as in Huber's estimator. Without rows, all factors are 1.
std::vector<double> fit_to_ones(const std::vector<std::vector<double>>& rows,
                                const FactorPrior& prior);

}  // namespace trireme
