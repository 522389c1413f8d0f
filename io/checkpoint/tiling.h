// Computes relations between blocks of one tensor: whether they tile it, and which elements two of
// them share. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/tensor/extent.h"

namespace trireme {

// Returns whether the extent is all of the tensor, as a box or as a flat range.
bool is_whole(const Extent& extent, const Shape& shape);

// Returns "" if the extents cover each element of the tensor exactly once, else what is wrong. They
// must be all boxes or all flat ranges.
std::string tiling_fault(const std::vector<Extent>& extents, const Shape& shape);

// A SharedRun is a run of elements that two blocks share: it starts at element `first` of the first
// block and at element `second` of the second.
struct SharedRun {
  std::int64_t first;
  std::int64_t second;
  std::int64_t elements;
};
std::vector<SharedRun> shared_runs(const std::vector<Run1d>& first,
                                   const std::vector<Run1d>& second);
// Returns false if they certainly share no element. It makes a few comparisons only.
bool may_overlap(const Extent& a, const Extent& b);

}  // namespace trireme
