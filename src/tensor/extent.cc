#include "src/tensor/extent.h"

namespace trireme {

std::int64_t Extent::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : length) {
    n *= extent;
  }
  return n;
}

bool Extent::fits(const Shape& shape) const {
  if (kind == Kind::flat) {
    return start.size() == 1 && length.size() == 1 && start[0] >= 0 && length[0] >= 0 &&
           start[0] <= shape.elements() && length[0] <= shape.elements() - start[0];
  }
  if (start.size() != static_cast<std::size_t>(shape.rank()) || length.size() != start.size()) {
    return false;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (start[i] < 0 || length[i] < 0 || start[i] > shape[axis] ||
        length[i] > shape[axis] - start[i]) {
      return false;
    }
  }
  return true;
}

std::vector<Run1d> runs_of(const Extent& extent, const Shape& shape) {
  check(extent.fits(shape), "a block lies within its tensor");
  if (extent.kind == Extent::Kind::flat || shape.rank() == 0) {
    return {{extent.kind == Extent::Kind::flat ? extent.start[0] : 0, 0, extent.elements()}};
  }
  // The axes from `inner` on are complete, so a run covers length[inner - 1] rows of them.
  int inner = shape.rank();
  std::int64_t run_elements = 1;
  while (inner > 1 && extent.length[static_cast<std::size_t>(inner - 1)] == shape[inner - 1]) {
    run_elements *= shape[--inner];
  }
  const int run_axis = inner - 1;
  run_elements *= extent.length[static_cast<std::size_t>(run_axis)];

  std::vector<Run1d> runs;
  std::vector<std::int64_t> index(static_cast<std::size_t>(run_axis), 0);
  const std::int64_t count = run_elements == 0 ? 0 : extent.elements() / run_elements;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t whole = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      whole = whole * shape[axis] + extent.start[a] + (axis < run_axis ? index[a] : 0);
    }
    runs.push_back({whole, i * run_elements, run_elements});
    for (int axis = run_axis - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (++index[a] < extent.length[a]) {
        break;
      }
      index[a] = 0;
    }
  }
  return runs;
}

}  // namespace trireme
