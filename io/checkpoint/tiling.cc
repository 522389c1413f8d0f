#include "io/checkpoint/tiling.h"

#include <algorithm>

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
    // Both numbers are at most shape.elements(), so that the sum can't overflow before the test.
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
  std::sort(blocks.begin(), blocks.end(),
            [](const Extent* a, const Extent* b) { return a->start < b->start; });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = i + 1; j < blocks.size(); ++j) {
      if (blocks[j]->start[0] >= blocks[i]->start[0] + blocks[i]->length[0]) {
        break;
      }
      if (may_overlap(*blocks[i], *blocks[j])) {
        return fmt::format("two blocks overlap, from element {} on along the first axis",
                           blocks[j]->start[0]);
      }
    }
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
