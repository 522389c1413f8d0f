#include "src/interchange/onnx/onnx_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// More than a text of a few tokens needs in any model; a damaged graph asks for more.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

}  // namespace

std::int64_t OnnxArray::size() const {
  return weights.empty() ? std::ssize(values) : std::ssize(weights);
}

std::size_t OnnxArray::axis(std::int64_t number) const {
  const std::int64_t rank = std::ssize(shape);
  if (number < -rank || number >= rank) {
    throw DataError(fmt::format("there is no axis {} of {}", number, rank));
  }
  return static_cast<std::size_t>(number < 0 ? number + rank : number);
}

std::vector<std::int64_t> OnnxArray::strides() const {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

OnnxArray zeros(std::vector<std::int64_t> shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && elements > kMostElements / extent)) {
      throw DataError("an array has an impossible shape");
    }
    elements *= extent;
  }
  return {std::move(shape), std::vector<double>(static_cast<std::size_t>(elements)), {}};
}

std::vector<std::int64_t> common_shape(const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> shape(std::max(a.size(), b.size()), 1);
  for (const auto* each : {&a, &b}) {
    for (std::size_t i = 0; i < each->size(); ++i) {
      std::int64_t& extent = shape[shape.size() - 1 - i];
      const std::int64_t own = (*each)[each->size() - 1 - i];
      if (own != 1 && extent != 1 && own != extent) {
        throw DataError(fmt::format("extents {} and {} do not fit", extent, own));
      }
      extent = extent == 1 ? own : extent;
    }
  }
  return shape;
}

std::vector<std::int64_t> repeated_strides(const OnnxArray& array,
                                           const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> repeated(shape.size(), 0);
  const std::vector<std::int64_t> own = array.strides();
  const std::size_t missing = shape.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    repeated[missing + i] = array.shape[i] == 1 ? 0 : own[i];
  }
  return repeated;
}

Places::Places(std::vector<std::int64_t> shape, std::vector<std::vector<std::int64_t>> strides)
    : shape_(std::move(shape)),
      strides_(std::move(strides)),
      at_(shape_.size(), 0),
      offsets_(strides_.size(), 0) {}

void Places::next() {
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    const std::int64_t step = ++at_[axis] < shape_[axis] ? 1 : 1 - shape_[axis];
    for (std::size_t i = 0; i < strides_.size(); ++i) {
      offsets_[i] += step * strides_[i][axis];
    }
    if (step == 1) {
      return;
    }
    at_[axis] = 0;
  }
}

}  // namespace trireme
