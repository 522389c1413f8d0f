#include <cfloat>

#include "src/base/ignored_target.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/ids.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// The number of logits whose terms are summed in f32 before the sum goes on in double.
constexpr std::int64_t kTermsAtOnce = 2048;

// Softened is the softmax of a row at a temperature: exp((x - maximum) / temperature) / sum.
struct Softened {
  float maximum = -FLT_MAX;
  float rate = 1;  // log2(e) / temperature
  double sum = 0;

  // Returns log2 of the weight exp((x - maximum) / temperature), which is not positive.
  TRIREME_INLINE Floats exponent(Floats x) const { return (x - maximum) * rate; }
};

TRIREME_INLINE Floats weight_of(Floats exponent) { return exp2(max(splat(-150.0F), exponent)); }

// Adds f(i, All or Part) over n elements, in f32 within blocks and in double over them. Lanes that
// do not count must be zero.
template <class F>
TRIREME_INLINE double sum_in_blocks(std::int64_t n, F f) {
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += kTermsAtOnce) {
    const std::int64_t count = n - first < kTermsAtOnce ? n - first : kTermsAtOnce;
    sum += static_cast<double>(
        sum_of_vectors(count, [=](std::int64_t i, auto part) { return f(first + i, part); }));
  }
  return sum;
}

template <class T>
Softened softened(const T* x, std::int64_t vocabulary, float temperature) {
  Softened s;
  s.rate = kLog2E / temperature;
  Floats most = splat(s.maximum);
  each_vector(vocabulary, [&](std::int64_t i, auto part) {
    most = max(most, kept(load(x + i, part), part, most));
  });
  s.maximum = max_of_lanes(most);
  s.sum = sum_in_blocks(vocabulary, [=](std::int64_t i, auto part) {
    return kept(weight_of(s.exponent(load(x + i, part))), part);
  });
  return s;
}

// Returns the divergence, and replaces the teacher's logits by gradients unless forward_only.
template <class T>
float row_divergence(const Distillation& p, const T* x, T* teacher) {
  const Softened own = softened(x, p.vocabulary, p.temperature);
  const Softened taught = softened(teacher, p.vocabulary, p.temperature);
  // Log-probabilities differ by the difference of these exponents, and of the logarithms of the
  // sums, which is the same for all ids.
  constexpr double kLn2 = 0.69314718055994531;
  const double weighted = sum_in_blocks(p.vocabulary, [=](std::int64_t i, auto part) {
    const Floats exponent = taught.exponent(load(teacher + i, part));
    return kept(weight_of(exponent) * (exponent - own.exponent(load(x + i, part))), part);
  });
  const double divergence =
      kLn2 * (weighted / taught.sum) - (__builtin_log(taught.sum) - __builtin_log(own.sum));
  if (!p.forward_only) {
    const double scale = static_cast<double>(p.scale) / static_cast<double>(p.temperature);
    const auto of_own = static_cast<float>(scale / own.sum);
    const auto of_teacher = static_cast<float>(scale / taught.sum);
    each_vector(p.vocabulary, [=](std::int64_t i, auto part) {
      const Floats q = weight_of(own.exponent(load(x + i, part))) * of_own;
      const Floats t = weight_of(taught.exponent(load(teacher + i, part))) * of_teacher;
      store(teacher + i, q - t, part);
    });
  }
  return static_cast<float>(divergence);
}

template <class T>
float divergence_of(const Distillation& p, const T* x, T* teacher, std::int32_t target) {
  if (target != kIgnoredTarget) {
    return row_divergence(p, x, teacher);
  }
  if (!p.forward_only) {
    each_vector(p.vocabulary,
                [=](std::int64_t i, auto part) { store(teacher + i, splat(0.0F), part); });
  }
  return 0;
}

}  // namespace

void distillation(Stream& stream, const Distillation& p) {
  check_targets(p.targets, p.rows, p.vocabulary);
  by_type(p.logits.dtype, [&]<class T>(T) {
    const T* logits = as<T>(p.logits);
    T* teacher = as<T>(p.teacher);
    const std::int32_t* targets = as<std::int32_t>(p.targets);
    float* divergences = as<float>(p.divergences);
    each_range(stream, p.rows, 1, p.rows * p.vocabulary,
               [=, &p](std::int64_t first, std::int64_t last) {
                 for (std::int64_t r = first; r < last; ++r) {
                   divergences[r] =
                       divergence_of(p, logits + r * p.row(), teacher + r * p.row(), targets[r]);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
