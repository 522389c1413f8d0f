// Finds where the values of a series change for good: after an update, a broken fan, a new kernel.
// Pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace trireme {

// Series that are longer are searched from their end.
inline constexpr std::size_t kMostSearched = 300;

// Returns the indices at which a new level begins, in ascending order. The method is E-divisive
// (Matteson and James, 2014): the division with the largest energy distance between its two sides
// is accepted if at most 2 of 399 random orders of the same values give such a distance. If there
// is none, the window with the largest distance from both of its surroundings together is accepted
// if no order gives such a distance: a change and its end hide each other from a single division.
// All parts are then searched in the same way. Each part has at least three values. The random
// orders are the same in every call. All values are finite.
std::vector<std::size_t> change_points(const std::vector<double>& values);

}  // namespace trireme
