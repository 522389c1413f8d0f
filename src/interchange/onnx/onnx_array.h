// OnnxArray is a value of the interpreter: numbers with a shape. Weights stay floats.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme {

struct OnnxArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  std::vector<float> weights;  // instead of values

  std::int64_t size() const;
  double at(std::int64_t i) const {
    const auto place = static_cast<std::size_t>(i);
    return weights.empty() ? values[place] : static_cast<double>(weights[place]);
  }
  // Returns the axis, which may be counted from the end. Throws DataError if there is none.
  std::size_t axis(std::int64_t number) const;
  // Returns, for each axis, the distance in elements between neighbours along it.
  std::vector<std::int64_t> strides() const;
};

// Returns an array of zeros.
OnnxArray zeros(std::vector<std::int64_t> shape);
// Returns the shape to which both are repeated along axes of one element, as numpy does. Throws
// DataError if that is impossible.
std::vector<std::int64_t> common_shape(const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b);
// Returns the strides of an array that is repeated to `shape`: 0 along repeated axes.
std::vector<std::int64_t> repeated_strides(const OnnxArray& array,
                                           const std::vector<std::int64_t>& shape);

// Places visits the elements of a shape in row-major order. For each of several arrays, it keeps
// the offset of the array's element at the current position.
class Places {
 public:
  Places(std::vector<std::int64_t> shape, std::vector<std::vector<std::int64_t>> strides);

  std::int64_t of(std::size_t array) const { return offsets_[array]; }
  void next();

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::vector<std::int64_t>> strides_;  // [arrays][axes]
  std::vector<std::int64_t> at_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace trireme
