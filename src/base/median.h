// The middle of measured values.
#pragma once

#include <vector>

namespace trireme {

// Of an even number the mean of the two in the middle; 0 of none.
double median(std::vector<double> values);

}  // namespace trireme
