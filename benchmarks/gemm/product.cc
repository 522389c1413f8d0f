#include "benchmarks/gemm/product.h"

#include <cmath>
#include <limits>

#include "src/base/philox.h"

namespace trireme {
namespace {

float operand(std::int64_t index, std::uint64_t which) {
  return static_cast<float>(mix64(2 * static_cast<std::uint64_t>(index) + which) % 5) - 2;
}

// Sets element i to value(i), rounded to the view's type.
template <class Value>
void set_all(DeviceContext& context, const View& view, Value value) {
  const auto set = [&](auto round) {
    using Element = decltype(round(0.0F));
    context.write<Element>(view, [&](Element* to) {
      for (std::int64_t i = 0; i < view.count; ++i) {
        to[i] = round(value(i));
      }
    });
  };
  switch (view.dtype) {
    case DType::bf16:
      return set([](float x) { return to_bf16(x); });
    case DType::f16:
      return set([](float x) { return to_f16(x); });
    default:
      return set([](float x) { return x; });
  }
}

// Returns how far a result may be from the sum, by its magnitude: by one place of its type.
double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 1.0 / 256 : dtype == DType::f16 ? 1.0 / 2048 : 0;
}

}  // namespace

Product::Product(DeviceContext& context, const ProductShape& shape, DType dtype, Fp8Format format)
    : context_(context),
      shape_(shape),
      format_(format),
      a_(context.activations(), {shape.m, shape.k}, dtype),
      b_(context.activations(), {shape.k, shape.n}, dtype),
      c_(context.activations(), {shape.m, shape.n}, shape.result(dtype)) {
  fill(a_, 0);
  fill(b_, 1);
  corrupt();
}

void Product::fill(const Tensor& tensor, std::uint64_t which) const {
  set_all(context_, tensor.view(), [which](std::int64_t i) { return operand(i, which); });
}

void Product::corrupt() {
  set_all(context_, c_.view(),
          [](std::int64_t) { return std::numeric_limits<float>::quiet_NaN(); });
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
  product.fp8_a.format = format_;
  product.fp8_b.format = format_;
  context_.kernels().matmul(context_.stream(), product);
}

double Product::computed(std::int64_t at) const {
  const View one = c_.view().slice(at, 1);
  switch (c_.dtype()) {
    case DType::bf16:
      return to_float(context_.read<bf16>(one)[0]);
    case DType::f16:
      return to_float(context_.read<f16>(one)[0]);
    default:
      return context_.read<float>(one)[0];
  }
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
    const double tolerance = std::abs(expected) * tolerance_of(c_.dtype());
    count += std::abs(computed(at) - expected) <= tolerance ? 0 : 1;
  }
  return count;
}

}  // namespace trireme
