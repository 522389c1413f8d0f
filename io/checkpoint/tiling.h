// How blocks of one tensor meet: whether they tile it, and what two of them share.
#pragma once

#include <string>
#include <vector>

#include "src/tensor/extent.h"

namespace trireme {

// Whether the extent is all of the tensor, as a box or as a flat range.
bool is_whole(const Extent& extent, const Shape& shape);

// Empty if the extents cover each element of the tensor exactly once; else what is wrong. A tensor
// is cut into boxes or into flat ranges, not into both.
std::string tiling_fault(const std::vector<Extent>& extents, const Shape& shape);

// Elements that lie in both blocks: `first` is where they start in the one, `second` in the other.
struct SharedRun {
  std::int64_t first;
  std::int64_t second;
  std::int64_t elements;
};
std::vector<SharedRun> shared_runs(const std::vector<Run1d>& first,
                                   const std::vector<Run1d>& second);
// Whether they could share any; cheap.
bool may_overlap(const Extent& a, const Extent& b);

}  // namespace trireme
