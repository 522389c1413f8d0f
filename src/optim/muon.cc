#include "src/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "src/tensor/tensor.h"

namespace trireme {
namespace {

constexpr int kIterations = 5;
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;

// Work holds views of the workspace.
struct Work {
  View x;        // [rows,columns]
  View product;  // [rows,columns]
  View a;        // [side,side]
  View aa;       // [side,side]
};

// Updates the momentum buffer b and writes d (see muon.h) to work.x.
void accumulate(const Muon& p, const Work& work, const Kernels& kernels, Stream& stream) {
  kernels.combine(stream, {p.buffer, p.momentum, p.buffer, p.gradient_scale, p.gradient});
  if (p.nesterov) {
    kernels.combine(stream, {work.x, p.gradient_scale, p.gradient, p.momentum, p.buffer});
  } else {
    kernels.combine(stream, {work.x, 1, p.buffer});
  }
}

// Divides x by its Frobenius norm.
void divide_by_norm(const View& x, DeviceContext& context) {
  const Kernels& kernels = context.kernels();
  const Tensor sums(context.activations(), {(x.count + kSumBlock - 1) / kSumBlock}, DType::f64);
  kernels.sums_of_squares(context.stream(), sums.view(), x);
  kernels.normalize(context.stream(), x, sums.view(), 1e-7F);
}

// Replaces work.x by a nearly orthogonal matrix.
void orthogonalize(const Muon& p, const Work& work, const Kernels& kernels, Stream& stream) {
  const bool wide = p.rows <= p.columns;
  const std::int64_t side = std::min(p.rows, p.columns);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    kernels.matmul(stream, {.m = side,
                            .n = side,
                            .k = std::max(p.rows, p.columns),
                            .a = work.x,
                            .b = work.x,
                            .c = work.a,
                            .transpose_a = !wide,
                            .transpose_b = wide});
    kernels.matmul(stream,
                   {.m = side, .n = side, .k = side, .a = work.a, .b = work.a, .c = work.aa});
    kernels.combine(stream, {work.a, kB, work.a, kC, work.aa});
    kernels.matmul(stream, {.m = p.rows,
                            .n = p.columns,
                            .k = side,
                            .a = wide ? work.a : work.x,
                            .b = wide ? work.x : work.a,
                            .c = work.product});
    kernels.combine(stream, {work.x, kA, work.x, 1, work.product});
  }
}

}  // namespace

std::int64_t muon_workspace(std::int64_t rows, std::int64_t columns) {
  const std::int64_t side = std::min(rows, columns);
  return 2 * rows * columns + 2 * side * side;
}

void muon_step(const Muon& p, DeviceContext& context) {
  const Kernels& kernels = context.kernels();
  Stream& stream = context.stream();
  const std::int64_t elements = p.rows * p.columns;
  const std::int64_t square = std::min(p.rows, p.columns) * std::min(p.rows, p.columns);
  check(p.workspace.count >= muon_workspace(p.rows, p.columns), "Muon's workspace is large enough");
  const Work work{p.workspace.slice(0, elements), p.workspace.slice(elements, elements),
                  p.workspace.slice(2 * elements, square),
                  p.workspace.slice(2 * elements + square, square)};
  accumulate(p, work, kernels, stream);
  divide_by_norm(work.x, context);
  orthogonalize(p, work, kernels, stream);
  if (p.keep_zeros) {
    kernels.zero_where_zero(stream, work.x, p.value);
  }
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(p.rows, p.columns)));
  const auto keep =
      static_cast<float>(1 - static_cast<double>(p.lr) * static_cast<double>(p.weight_decay));
  const auto rate = static_cast<float>(static_cast<double>(p.lr) * size);
  kernels.combine(stream, {p.value, keep, p.value, -rate, work.x});
}

}  // namespace trireme
