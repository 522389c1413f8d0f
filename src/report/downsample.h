// Reduces a series of points to those that a figure needs. A pure function.
#pragma once

#include <cstddef>
#include <vector>

namespace trireme {

// Returns the indices of at most about `most` points, in ascending order: the first and the last,
// the lowest and the highest, and in each of the buckets between them the point that makes the
// largest triangle with its neighbours (LTTB; Steinarsson 2013, Downsampling Time Series for Visual
// Representation, 4.2). Where y is NaN or infinite, one such point is kept, so that the line has a
// gap there; if there are too many gaps for that, they are left out. x must be in ascending order
// and as long as y. most: at least 8.
std::vector<std::size_t> downsample(const std::vector<double>& x, const std::vector<double>& y,
                                    std::size_t most);

}  // namespace trireme
