#include <algorithm>

#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

// Returns how much of element i the decay leaves.
template <class Update>
double kept(const Update& p, std::int64_t i) {
  const auto turns = std::upper_bound(p.turns.begin(), p.turns.end(), i) - p.turns.begin();
  return turns % 2 == 0 ? 1 - static_cast<double>(p.lr) * static_cast<double>(p.weight_decay) : 1;
}

}  // namespace

void adamw(Stream&, const AdamW& p) {
  const auto beta1 = static_cast<double>(p.beta1);
  const auto beta2 = static_cast<double>(p.beta2);
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(p.step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(p.step));
  const auto lr = static_cast<double>(p.lr);
  for (std::int64_t i = 0; i < p.value.count; ++i) {
    const double g = at(p.gradient, i) * static_cast<double>(p.gradient_scale);
    const double m = beta1 * at(p.m, i) + (1 - beta1) * g;
    const double v = beta2 * at(p.v, i) + (1 - beta2) * g * g;
    const double decayed = at(p.value, i) * kept(p, i);
    const double step =
        m / correction1 / (std::sqrt(v / correction2) + static_cast<double>(p.epsilon));
    put(p.m, i, m);
    put(p.v, i, v);
    put(p.value, i, decayed - lr * step);
    if (!p.compute.empty()) {
      put(p.compute, i, at(p.value, i));
    }
  }
}

void sgd(Stream&, const Sgd& p) {
  const auto lr = static_cast<double>(p.lr);
  const auto momentum = static_cast<double>(p.momentum);
  for (std::int64_t i = 0; i < p.value.count; ++i) {
    const double g = at(p.gradient, i) * static_cast<double>(p.gradient_scale);
    const double buffer = momentum * at(p.buffer, i) + g;
    const double step = p.nesterov ? g + momentum * buffer : buffer;
    put(p.buffer, i, buffer);
    put(p.value, i, at(p.value, i) * kept(p, i) - lr * step);
    if (!p.compute.empty()) {
      put(p.compute, i, at(p.value, i));
    }
  }
}

void moving_average(Stream&, const MovingAverage& p) {
  const double fresh = 1 - static_cast<double>(p.decay);
  for (std::int64_t i = 0; i < p.average.count; ++i) {
    put(p.average, i, at(p.average, i) + fresh * (at(p.value, i) - at(p.average, i)));
  }
}

void combine(Stream&, const Combine& p) {
  for (std::int64_t i = 0; i < p.result.count; ++i) {
    const double y = p.y.empty() ? 0 : static_cast<double>(p.b) * at(p.y, i);
    put(p.result, i, static_cast<double>(p.a) * at(p.x, i) + y);
  }
}

void zero_where_zero(Stream&, View x, ConstView y) {
  for (std::int64_t i = 0; i < x.count; ++i) {
    put(x, i, at(y, i) == 0 ? 0 : at(x, i));
  }
}

void normalize(Stream&, View x, ConstView sums, float epsilon) {
  double total = 0;
  for (std::int64_t block = 0; block < sums.count; ++block) {
    total += as<double>(sums)[block];
  }
  const double factor = 1 / (std::sqrt(total) + static_cast<double>(epsilon));
  for (std::int64_t i = 0; i < x.count; ++i) {
    put(x, i, factor * at(x, i));
  }
}

void sum(Stream&, View total, ConstView x) {
  double all = 0;
  for (std::int64_t i = 0; i < x.count; ++i) {
    all += at(x, i);
  }
  *as<double>(total) = all;
}

void sums_of_squares(Stream&, View sums, ConstView x) {
  for (std::int64_t block = 0; block < x.count; block += kSumBlock) {
    double sum = 0;
    for (std::int64_t i = block; i < std::min(x.count, block + kSumBlock); ++i) {
      sum += at(x, i) * at(x, i);
    }
    as<double>(sums)[block / kSumBlock] = sum;
  }
}

void add(Stream&, View y, ConstView x) {
  for (std::int64_t i = 0; i < y.count; ++i) {
    put(y, i, at(y, i) + at(x, i));
  }
}

void add_chain(Stream&, View y, const ConstView* x, int n) {
  for (std::int64_t i = 0; i < y.count; ++i) {
    float sum = as<float>(x[n - 1])[i];
    for (int j = n - 2; j >= 0; --j) {
      sum = as<float>(x[j])[i] + sum;
    }
    as<float>(y)[i] += sum;
  }
}

void cast(Stream&, View y, ConstView x) {
  for (std::int64_t i = 0; i < y.count; ++i) {
    put(y, i, at(x, i));
  }
}

void fill(Stream&, View y, float value) {
  for (std::int64_t i = 0; i < y.count; ++i) {
    put(y, i, static_cast<double>(value));
  }
}

void scale(Stream&, View x, float factor) {
  for (std::int64_t i = 0; i < x.count; ++i) {
    put(x, i, at(x, i) * static_cast<double>(factor));
  }
}

}  // namespace trireme::reference
