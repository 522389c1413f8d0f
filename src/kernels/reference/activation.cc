#include "src/base/philox.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void gelu_forward(Stream&, View y, ConstView x) {
  for (std::int64_t i = 0; i < x.count; ++i) {
    put(y, i, gelu(at(x, i)));
  }
}

void gelu_backward(Stream&, View dx, ConstView dy, ConstView x) {
  for (std::int64_t i = 0; i < x.count; ++i) {
    put(dx, i, at(dy, i) * gelu_slope(at(x, i)));
  }
}

void swiglu_forward(Stream&, View y, ConstView gate, ConstView up) {
  for (std::int64_t i = 0; i < y.count; ++i) {
    const double g = at(gate, i);
    put(y, i, g * logistic(g) * at(up, i));
  }
}

void swiglu_backward(Stream&, View dgate, View dup, ConstView dy, ConstView gate, ConstView up) {
  for (std::int64_t i = 0; i < dy.count; ++i) {
    const double g = at(gate, i);
    const double s = logistic(g);
    const double d = at(dy, i);
    const double u = at(up, i);
    put(dgate, i, d * u * s * (1 + g * (1 - s)));
    put(dup, i, d * g * s);
  }
}

void dropout(Stream&, const Dropout& p) {
  const float scale = 1 / (1 - p.probability);
  const std::uint32_t step = p.position == nullptr ? p.step : p.position[0];
  const std::int64_t first_sample = p.position == nullptr ? p.first_sample : p.position[1];
  for (std::int64_t sample = 0; sample < p.batch; ++sample) {
    for (std::int64_t e = 0; e < p.elements_per_sample; ++e) {
      const PhiloxCounter words =
          philox({p.site, step, static_cast<std::uint32_t>(first_sample + sample),
                  static_cast<std::uint32_t>(e / 4)},
                 philox_key(p.seed));
      const bool kept = uniform_float(words[static_cast<std::size_t>(e % 4)]) >= p.probability;
      const std::int64_t i = sample * p.elements_per_sample + e - p.first_element;
      if (i < 0 || i >= p.x.count) {
        continue;
      }
      put(p.y, i, kept ? at(p.x, i) * static_cast<double>(scale) : 0);
    }
  }
}

}  // namespace trireme::reference
