#include "benchmarks/gemm/product.h"

#include <cmath>
#include <cstring>

#include "src/base/philox.h"

namespace trireme {
namespace {

float operand(std::int64_t index, std::uint64_t which) {
  return static_cast<float>(mix64(2 * static_cast<std::uint64_t>(index) + which) % 5) - 2;
}

double value_at(const View& view, std::int64_t at) {
  return view.dtype == DType::bf16 ? to_float(as<bf16>(view)[at]) : as<float>(view)[at];
}

}  // namespace

Product::Product(DeviceContext& context, const ProductShape& shape, DType dtype)
    : context_(context),
      shape_(shape),
      a_(context.activations(), {shape.m, shape.k}, dtype),
      b_(context.activations(), {shape.k, shape.n}, dtype),
      c_(context.activations(), {shape.m, shape.n}, shape.result(dtype)) {
  fill(a_, 0);
  fill(b_, 1);
  corrupt();
}

void Product::fill(const Tensor& tensor, std::uint64_t which) const {
  const View view = tensor.view();
  for (std::int64_t i = 0; i < view.count; ++i) {
    if (view.dtype == DType::bf16) {
      as<bf16>(view)[i] = to_bf16(operand(i, which));
    } else {
      as<float>(view)[i] = operand(i, which);
    }
  }
}

void Product::corrupt() {
  // In both types, all bits set are a NaN.
  std::memset(c_.view().data, 0xFF, static_cast<std::size_t>(c_.view().bytes()));
}

void Product::run() {
  Matmul product;
  product.m = shape_.m;
  product.n = shape_.n;
  product.k = shape_.k;
  product.a = a_.view();
  product.b = b_.view();
  product.c = c_.view();
  product.transpose_a = shape_.transpose_a;
  product.transpose_b = shape_.transpose_b;
  context_.kernels().matmul(context_.stream(), product);
  context_.stream().synchronize();
}

double Product::element(std::int64_t row, std::int64_t column) const {
  double sum = 0;
  for (std::int64_t i = 0; i < shape_.k; ++i) {
    const std::int64_t a = shape_.transpose_a ? i * shape_.m + row : row * shape_.k + i;
    const std::int64_t b = shape_.transpose_b ? column * shape_.k + i : i * shape_.n + column;
    sum += double{operand(a, 0)} * operand(b, 1);
  }
  return sum;
}

std::int64_t Product::wrong() const {
  const auto elements = static_cast<std::uint64_t>(shape_.m * shape_.n);
  std::int64_t count = 0;
  for (std::uint64_t i = 0; i < kVerified; ++i) {
    const auto at = static_cast<std::int64_t>(mix64(i) % elements);
    const double expected = element(at / shape_.n, at % shape_.n);
    const double tolerance = c_.dtype() == DType::bf16 ? std::abs(expected) / 256 : 0;
    count += std::abs(value_at(c_.view(), at) - expected) <= tolerance ? 0 : 1;
  }
  return count;
}

}  // namespace trireme
