#include "src/interchange/onnx/onnx_operators.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "io/checkpoint/workers.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Shape64 = std::vector<std::int64_t>;

// Calls f with the first element and the size of each row along the last axis.
template <class F>
OnnxArray rows_of(OnnxArray x, F f) {
  const std::int64_t width = x.shape.empty() ? 1 : x.shape.back();
  for (std::int64_t first = 0; width > 0 && first < x.size(); first += width) {
    f(x.values.data() + first, width);
  }
  return x;
}

}  // namespace

std::vector<std::int64_t> integers_of(const OnnxArray& array) {
  std::vector<std::int64_t> integers;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    integers.push_back(std::llround(array.at(i)));
  }
  return integers;
}

OnnxArray where(const OnnxArray& c, const OnnxArray& a, const OnnxArray& b) {
  OnnxArray y = zeros(common_shape(c.shape, common_shape(a.shape, b.shape)));
  Places places(y.shape, {repeated_strides(c, y.shape), repeated_strides(a, y.shape),
                          repeated_strides(b, y.shape)});
  for (double& value : y.values) {
    value = c.at(places.of(0)) != 0 ? a.at(places.of(1)) : b.at(places.of(2));
    places.next();
  }
  return y;
}

// Rows of the first axis.
OnnxArray gather(const OnnxArray& table, const OnnxArray& indices) {
  if (table.shape.empty()) {
    throw DataError("a number has no rows");
  }
  const std::int64_t rows = table.shape.front();
  const std::int64_t width = rows == 0 ? 0 : table.size() / rows;
  Shape64 shape = indices.shape;
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  OnnxArray y = zeros(shape);
  std::size_t to = 0;
  for (const std::int64_t row : integers_of(indices)) {
    if (row < 0 || row >= rows) {
      throw DataError(fmt::format("there is no row {} of {}", row, rows));
    }
    for (std::int64_t i = 0; i < width; ++i) {
      y.values[to++] = table.at(row * width + i);
    }
  }
  return y;
}

OnnxArray reshape(const OnnxArray& x, const OnnxArray& target) {
  Shape64 shape = integers_of(target);
  std::int64_t known = 1;
  std::size_t open = shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) {
      shape[i] = x.shape.at(x.axis(static_cast<std::int64_t>(i)));
    }
    if (shape[i] < 0) {
      open = i;
    } else {
      known *= std::max<std::int64_t>(shape[i], 1);
    }
    if (known > std::max<std::int64_t>(x.size(), 1)) {
      throw DataError("a reshape to more elements");
    }
  }
  if (open < shape.size()) {
    shape[open] = x.size() / known;
    known *= shape[open];
  }
  if (known != x.size()) {
    throw DataError(fmt::format("a reshape of {} elements to {}", x.size(), known));
  }
  return {shape, x.values, x.weights};
}

OnnxArray transpose(const OnnxArray& x, const Shape64& order) {
  const Shape64 strides = x.strides();
  Shape64 shape;
  Shape64 moved;
  for (const std::int64_t axis : order) {
    shape.push_back(x.shape.at(x.axis(axis)));
    moved.push_back(strides.at(x.axis(axis)));
  }
  if (order.size() != x.shape.size()) {
    throw DataError("a transposition of other axes");
  }
  OnnxArray y{shape, {}, {}};
  (x.weights.empty() ? static_cast<void>(y.values.resize(x.values.size()))
                     : y.weights.resize(x.weights.size()));
  Places places(shape, {moved});
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    const auto from = static_cast<std::size_t>(places.of(0));
    (x.weights.empty() ? static_cast<void>(y.values[i] = x.values.at(from))
                       : static_cast<void>(y.weights[i] = x.weights.at(from)));
    places.next();
  }
  return y;
}

OnnxArray product(const OnnxArray& a, const OnnxArray& b, int threads) {
  if (a.shape.size() < 2 || b.shape.size() < 2) {
    throw DataError("a product of vectors");
  }
  const std::int64_t m = a.shape[a.shape.size() - 2];
  const std::int64_t k = a.shape.back();
  const std::int64_t n = b.shape.back();
  if (b.shape[b.shape.size() - 2] != k) {
    throw DataError(
        fmt::format("a product over {} and {} elements", k, b.shape[b.shape.size() - 2]));
  }
  const auto outer = [](const OnnxArray& x) {
    return OnnxArray{{x.shape.begin(), x.shape.end() - 2}, {}, {}};
  };
  Shape64 shape = common_shape(outer(a).shape, outer(b).shape);
  Places places(shape, {repeated_strides(outer(a), shape), repeated_strides(outer(b), shape)});
  const std::int64_t products =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  shape.insert(shape.end(), {m, n});
  OnnxArray y = zeros(shape);
  const std::int64_t parts = products > 0 ? std::min<std::int64_t>(threads, n) : 0;
  for (std::int64_t i = 0; i < products; ++i) {
    const std::int64_t first_a = places.of(0) * m * k;
    const std::int64_t first_b = places.of(1) * k * n;
    parallel_for(threads, parts, [&](std::int64_t part) {
      for (std::int64_t row = 0; row < m; ++row) {
        double* const to = y.values.data() + (i * m + row) * n;
        for (std::int64_t inner = 0; inner < k; ++inner) {
          const double x = a.at(first_a + row * k + inner);
          for (std::int64_t column = n * part / parts; column < n * (part + 1) / parts; ++column) {
            to[column] += x * b.at(first_b + inner * n + column);
          }
        }
      }
    });
    places.next();
  }
  return y;
}

OnnxArray softmax(OnnxArray x) {
  return rows_of(std::move(x), [](double* row, std::int64_t width) {
    const double most = *std::max_element(row, row + width);
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      row[i] = std::exp(row[i] - most);
      sum += row[i];
    }
    std::for_each(row, row + width, [&](double& v) { v /= sum; });
  });
}

OnnxArray layer_norm(OnnxArray x, const OnnxArray& weight, const OnnxArray& bias, double epsilon) {
  const std::int64_t columns = x.shape.empty() ? 1 : x.shape.back();
  if (weight.size() != columns || bias.size() != columns) {
    throw DataError("a norm of another width");
  }
  return rows_of(std::move(x), [&](double* row, std::int64_t width) {
    const auto count = static_cast<double>(width);
    const double mean = std::accumulate(row, row + width, 0.0) / count;
    double variance = 0;
    std::for_each(row, row + width, [&](double v) { variance += (v - mean) * (v - mean); });
    const double deviation = std::sqrt(variance / count + epsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      row[i] = (row[i] - mean) / deviation * weight.at(i) + bias.at(i);
    }
  });
}

OnnxArray mean(const OnnxArray& x) {
  Shape64 shape = x.shape;
  if (shape.empty() || shape.back() == 0) {
    throw DataError("a mean of nothing");
  }
  const std::int64_t width = shape.back();
  shape.back() = 1;
  OnnxArray y = zeros(shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    y.values[static_cast<std::size_t>(i / width)] += x.at(i) / static_cast<double>(width);
  }
  return y;
}

std::vector<OnnxArray> split(const OnnxArray& x, const Shape64& sizes) {
  if (x.shape.empty() || std::any_of(sizes.begin(), sizes.end(), [](auto s) { return s < 1; }) ||
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != x.shape.back()) {
    throw DataError("a split into other sizes");
  }
  std::vector<OnnxArray> parts;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    OnnxArray part{x.shape, {}, {}};
    part.shape.back() = size;
    for (std::int64_t row = first; row < x.size(); row += x.shape.back()) {
      for (std::int64_t i = 0; i < size; ++i) {
        part.values.push_back(x.at(row + i));
      }
    }
    parts.push_back(std::move(part));
    first += size;
  }
  return parts;
}

OnnxArray concatenated(const OnnxArray& a, const OnnxArray& b) {
  if (a.shape.empty() || a.shape.size() != b.shape.size() || a.shape.back() < 1 ||
      b.shape.back() < 1 || a.size() / a.shape.back() != b.size() / b.shape.back()) {
    throw DataError("arrays that do not fit beside each other");
  }
  OnnxArray y{a.shape, {}, {}};
  y.shape.back() += b.shape.back();
  for (std::int64_t row = 0; row < a.size() / a.shape.back(); ++row) {
    for (const OnnxArray* each : {&a, &b}) {
      for (std::int64_t i = 0; i < each->shape.back(); ++i) {
        y.values.push_back(each->at(row * each->shape.back() + i));
      }
    }
  }
  return y;
}

OnnxArray unsqueezed(OnnxArray x, const std::vector<std::int64_t>& axes) {
  if (axes.size() != 1 || axes.front() < 0 || axes.front() > std::ssize(x.shape)) {
    throw DataError("it is known for one axis only");
  }
  x.shape.insert(x.shape.begin() + axes.front(), 1);
  return x;
}

}  // namespace trireme
