#include "src/optim/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme {
namespace {

constexpr int kIterations = 5;
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;

// Calls f(i) for all i < n on the stream's threads. The calls must be independent.
template <class F>
void each(const Stream& stream, std::int64_t n, F f) {
#pragma omp parallel for schedule(static) num_threads(stream.threads())
  for (std::int64_t i = 0; i < n; ++i) {
    f(i);
  }
}

double norm_of(const ConstView& x, const Kernels& kernels, Stream& stream) {
  std::vector<double> sums(static_cast<std::size_t>((x.count + kSumBlock - 1) / kSumBlock));
  kernels.sums_of_squares(stream, sums.data(), x);
  double sum = 0;
  for (const double block : sums) {
    sum += block;
  }
  return std::sqrt(sum);
}

// Views of the workspace.
struct Work {
  View x;        // [rows,columns]
  View product;  // [rows,columns]
  View a;        // [side,side]
  View aa;       // [side,side]
};

// Updates the momentum buffer b and writes d (see muon.h) to work.x.
void accumulate(const Muon& p, const Work& work, Stream& stream) {
  const float* gradient = as<float>(p.gradient);
  float* buffer = as<float>(p.buffer);
  float* x = as<float>(work.x);
  each(stream, work.x.count, [&p, gradient, buffer, x](std::int64_t i) {
    const float g = gradient[i] * p.gradient_scale;
    const float b = p.momentum * buffer[i] + g;
    buffer[i] = b;
    x[i] = p.nesterov ? g + p.momentum * b : b;
  });
}

// Replaces work.x by a nearly orthogonal matrix.
void orthogonalize(const Muon& p, const Work& work, const Kernels& kernels, Stream& stream) {
  const bool wide = p.rows <= p.columns;
  const std::int64_t side = std::min(p.rows, p.columns);
  float* x = as<float>(work.x);
  float* a = as<float>(work.a);
  float* aa = as<float>(work.aa);
  const float* product = as<float>(work.product);
  const auto inverse = static_cast<float>(1 / (norm_of(work.x, kernels, stream) + 1e-7));
  each(stream, work.x.count, [=](std::int64_t i) { x[i] *= inverse; });
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
    each(stream, side * side, [=](std::int64_t i) { a[i] = kB * a[i] + kC * aa[i]; });
    kernels.matmul(stream, {.m = p.rows,
                            .n = p.columns,
                            .k = side,
                            .a = wide ? work.a : work.x,
                            .b = wide ? work.x : work.a,
                            .c = work.product});
    each(stream, work.x.count, [=](std::int64_t i) { x[i] = kA * x[i] + product[i]; });
  }
}

}  // namespace

std::int64_t muon_workspace(std::int64_t rows, std::int64_t columns) {
  const std::int64_t side = std::min(rows, columns);
  return 2 * rows * columns + 2 * side * side;
}

void muon_step(const Muon& p, const Kernels& kernels, Stream& stream) {
  const std::int64_t elements = p.rows * p.columns;
  const std::int64_t square = std::min(p.rows, p.columns) * std::min(p.rows, p.columns);
  check(p.workspace.count >= muon_workspace(p.rows, p.columns), "Muon's workspace is large enough");
  const Work work{p.workspace.slice(0, elements), p.workspace.slice(elements, elements),
                  p.workspace.slice(2 * elements, square),
                  p.workspace.slice(2 * elements + square, square)};
  accumulate(p, work, stream);
  orthogonalize(p, work, kernels, stream);
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(p.rows, p.columns)));
  const auto keep =
      static_cast<float>(1 - static_cast<double>(p.lr) * static_cast<double>(p.weight_decay));
  const auto rate = static_cast<float>(static_cast<double>(p.lr) * size);
  const float* x = as<float>(work.x);
  float* value = as<float>(p.value);
  each(stream, elements, [=](std::int64_t i) { value[i] = keep * value[i] - rate * x[i]; });
}

}  // namespace trireme
