#include "io/checkpoint/tiling.h"

#include <algorithm>
#include <array>
#include <optional>

#include "src/base/error.h"

namespace trireme {

bool is_whole(const Extent& extent, const Shape& shape) {
  return extent.fits(shape) &&
         (extent.kind == Extent::Kind::flat ? extent.length[0] == shape.elements()
                                            : extent.length == shape.to_vector());
}

bool may_overlap(const Extent& a, const Extent& b) {
  if (a.kind != b.kind) {
    return true;
  }
  for (std::size_t i = 0; i < a.start.size(); ++i) {
    if (a.start[i] + a.length[i] <= b.start[i] || b.start[i] + b.length[i] <= a.start[i]) {
      return false;
    }
  }
  return true;
}

namespace {

// A corner of boxes. `sign` is the sum of +1 and -1 over the boxes that have it as a corner.
struct Corner {
  std::array<std::int64_t, 4> at{};
  int sign = 0;
};

// Appends the corners of a box with their signs, times `factor`: +1 where an even number of axes is
// at its end, else -1. These are the mixed differences, along all axes, of the box's indicator
// function.
void add_corners(const Extent& box, int factor, std::vector<Corner>& corners) {
  const std::size_t axes = box.start.size();
  for (unsigned choice = 0; choice < (1U << axes); ++choice) {
    Corner corner;
    corner.sign = factor;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const bool at_end = (choice >> axis & 1U) != 0;
      corner.at[axis] = box.start[axis] + (at_end ? box.length[axis] : 0);
      corner.sign = at_end ? -corner.sign : corner.sign;
    }
    corners.push_back(corner);
  }
}

// Returns the first corner whose signs do not cancel between the blocks and the whole, or nothing
// if the blocks cover every element exactly once: a function with bounded support is determined by
// its mixed differences. This takes n log n steps, while comparing all pairs would take n^2.
std::optional<Corner> odd_corner(const std::vector<const Extent*>& blocks, const Extent& whole) {
  std::vector<Corner> corners;
  corners.reserve((blocks.size() + 1) << whole.start.size());
  add_corners(whole, -1, corners);
  for (const Extent* block : blocks) {
    add_corners(*block, 1, corners);
  }
  std::sort(corners.begin(), corners.end(),
            [](const Corner& a, const Corner& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < corners.size();) {
    const Corner first = corners[i];
    int sum = 0;
    for (; i < corners.size() && corners[i].at == first.at; ++i) {
      sum += corners[i].sign;
    }
    if (sum != 0) {
      return first;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string tiling_fault(const std::vector<Extent>& extents, const Shape& shape) {
  std::vector<const Extent*> blocks;
  std::int64_t covered = 0;
  for (const Extent& extent : extents) {
    if (!extent.fits(shape)) {
      return fmt::format("a block does not fit into the shape {}", shape.to_string());
    }
    if (extent.elements() == 0) {
      continue;
    }
    // Both sides are at most shape.elements(), so that the sum below can't overflow.
    if (extent.elements() > shape.elements() - covered) {
      return fmt::format("blocks overlap: they hold more than the {} elements of the shape {}",
                         shape.elements(), shape.to_string());
    }
    if (!blocks.empty() && blocks.front()->kind != extent.kind) {
      return "some blocks are boxes and some are flat ranges";
    }
    covered += extent.elements();
    blocks.push_back(&extent);
  }
  if (covered != shape.elements()) {
    return fmt::format("blocks cover {} of {} elements", covered, shape.elements());
  }
  if (shape.rank() == 0 || blocks.size() < 2) {
    return "";
  }
  const Extent whole = blocks.front()->kind == Extent::Kind::flat
                           ? Extent::flat(0, shape.elements())
                           : Extent::whole(shape);
  if (const std::optional<Corner> corner = odd_corner(blocks, whole)) {
    return fmt::format("two blocks overlap, at or near element {} along the first axis",
                       corner->at[0]);
  }
  return "";
}

std::vector<SharedRun> shared_runs(const std::vector<Run1d>& first,
                                   const std::vector<Run1d>& second) {
  std::vector<SharedRun> shared;
  for (std::size_t i = 0, j = 0; i < first.size() && j < second.size();) {
    const Run1d& a = first[i];
    const Run1d& b = second[j];
    const std::int64_t begin = std::max(a.whole_first, b.whole_first);
    const std::int64_t a_end = a.whole_first + a.elements;
    const std::int64_t b_end = b.whole_first + b.elements;
    if (begin < std::min(a_end, b_end)) {
      shared.push_back({a.block_first + begin - a.whole_first,
                        b.block_first + begin - b.whole_first, std::min(a_end, b_end) - begin});
    }
    a_end <= b_end ? ++i : ++j;
  }
  return shared;
}

}  // namespace trireme
