// Shape has up to four extents, outermost first; row-major.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "src/base/check.h"

namespace trireme {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    check(extents.size() <= extents_.size(), "a shape has at most four extents");
    for (const std::int64_t extent : extents) {
      check(extent >= 0, "an extent is not negative");
      extents_[static_cast<std::size_t>(rank_++)] = extent;
    }
  }
  explicit Shape(const std::vector<std::int64_t>& extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const {
    check(axis >= 0 && axis < rank_, "an axis lies within the shape");
    return extents_[static_cast<std::size_t>(axis)];
  }
  // Returns the number of elements, which is 1 for a scalar.
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int axis = 0; axis < rank_; ++axis) {
      n *= extents_[static_cast<std::size_t>(axis)];
    }
    return n;
  }
  std::vector<std::int64_t> to_vector() const {
    return {extents_.begin(), extents_.begin() + rank_};
  }
  // Returns, for example, "[2, 3]".
  std::string to_string() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, 4> extents_{};
  int rank_ = 0;
};

}  // namespace trireme
