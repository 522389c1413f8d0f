#include "src/kernels/cpu/combine.h"

#include <cmath>

#include "src/kernels/cpu/team.h"

namespace trireme::cpu {
namespace {

// Calls f(i) for all i < n on the stream's threads. The calls must be independent.
template <class F>
void each(const Stream& stream, std::int64_t n, F f) {
#pragma omp parallel for schedule(static) num_threads(team_for(stream.threads()))
  for (std::int64_t i = 0; i < n; ++i) {
    f(i);
  }
}

}  // namespace

void combine(Stream& stream, const Combine& p) {
  float* to = as<float>(p.result);
  const float* x = as<float>(p.x);
  const float* y = as<float>(p.y);
  if (y == nullptr) {
    each(stream, p.result.count, [=, a = p.a](std::int64_t i) { to[i] = a * x[i]; });
  } else {
    each(stream, p.result.count,
         [=, a = p.a, b = p.b](std::int64_t i) { to[i] = a * x[i] + b * y[i]; });
  }
}

void normalize(Stream& stream, View x, ConstView sums, float epsilon) {
  double total = 0;
  for (std::int64_t block = 0; block < sums.count; ++block) {
    total += as<double>(sums)[block];
  }
  combine(stream, {.result = x,
                   .a = static_cast<float>(1 / (std::sqrt(total) + static_cast<double>(epsilon))),
                   .x = x});
}

void zero_where_zero(Stream& stream, View x, ConstView y) {
  float* to = as<float>(x);
  const float* mask = as<float>(y);
  each(stream, x.count, [=](std::int64_t i) { to[i] = mask[i] == 0 ? 0 : to[i]; });
}

}  // namespace trireme::cpu
