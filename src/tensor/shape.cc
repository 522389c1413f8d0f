#include "src/tensor/shape.h"

#include <fmt/ranges.h>

namespace trireme {

Shape::Shape(const std::vector<std::int64_t>& extents) {
  check(extents.size() <= extents_.size(), "a shape has at most four extents");
  for (const std::int64_t extent : extents) {
    check(extent >= 0, "an extent is not negative");
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(to_vector(), ", ")); }

}  // namespace trireme
