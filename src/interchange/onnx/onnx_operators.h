// Operators on the arrays of the interpreter. Pure functions; those that are defined for any axis
// work on the last one (gather: on the first).
#pragma once

#include <cstdint>
#include <vector>

#include "src/interchange/onnx/onnx_array.h"

namespace trireme {

// Applies f to each element, or to those of two arrays that are repeated to a common shape.
template <class F>
OnnxArray each_of(const OnnxArray& a, F f) {
  OnnxArray y = zeros(a.shape);
  for (std::int64_t i = 0; i < y.size(); ++i) {
    y.values[static_cast<std::size_t>(i)] = f(a.at(i));
  }
  return y;
}
template <class F>
OnnxArray each_of(const OnnxArray& a, const OnnxArray& b, F f) {
  OnnxArray y = zeros(common_shape(a.shape, b.shape));
  Places places(y.shape, {repeated_strides(a, y.shape), repeated_strides(b, y.shape)});
  for (double& value : y.values) {
    value = f(a.at(places.of(0)), b.at(places.of(1)));
    places.next();
  }
  return y;
}

std::vector<std::int64_t> integers_of(const OnnxArray& array);

// All throw DataError for shapes that do not fit.
OnnxArray where(const OnnxArray& condition, const OnnxArray& a, const OnnxArray& b);
OnnxArray gather(const OnnxArray& table, const OnnxArray& indices);
// target: the shape; 0 keeps an extent, and -1 takes what is left.
OnnxArray reshape(const OnnxArray& x, const OnnxArray& target);
OnnxArray transpose(const OnnxArray& x, const std::vector<std::int64_t>& order);
// a: [...,M,K]; b: [...,K,N]. Threads share the columns.
OnnxArray product(const OnnxArray& a, const OnnxArray& b, int threads);
OnnxArray softmax(OnnxArray x);
OnnxArray layer_norm(OnnxArray x, const OnnxArray& weight, const OnnxArray& bias, double epsilon);
// The axis stays, with one element.
OnnxArray mean(const OnnxArray& x);
std::vector<OnnxArray> split(const OnnxArray& x, const std::vector<std::int64_t>& sizes);
OnnxArray concatenated(const OnnxArray& a, const OnnxArray& b);
OnnxArray unsqueezed(OnnxArray x, const std::vector<std::int64_t>& axes);

}  // namespace trireme
