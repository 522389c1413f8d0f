// Computes the median of measured values.
#pragma once

#include <vector>

namespace trireme {

// Returns the mean of the two middle values if their number is even, and 0 if there are none.
double median(std::vector<double> values);

}  // namespace trireme
