#include <cfloat>

#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/ids.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Logits read at a time: their maximum and their exponentials are taken while they are in the first
// cache, so that a row is read from memory once.
constexpr std::int64_t kChunk = 2048;

// e^x for x <= 0. A logit of -infinity has no part in the softmax; a NaN stays one.
TRIREME_INLINE Floats weight(Floats x) { return exp2(max(splat(-150.0F), x * kLog2E)); }

template <class T>
TRIREME_INLINE float largest(const T* x, std::int64_t n, float least) {
  Floats most = splat(least);
  each_vector(
      n, [&](std::int64_t i, auto part) { most = max(most, kept(load(x + i, part), part, most)); });
  return max_of_lanes(most);
}

// Of one row: the maximum so far, and the sum of exp(x - maximum).
struct Softmax {
  float maximum = -FLT_MAX;
  double sum = 0;
};

template <class T>
Softmax softmax_of(const T* x, std::int64_t vocabulary) {
  Softmax s;
  for (std::int64_t first = 0; first < vocabulary; first += kChunk) {
    const T* chunk = x + first;
    const std::int64_t n = vocabulary - first < kChunk ? vocabulary - first : kChunk;
    const float most = largest(chunk, n, s.maximum);
    if (most > s.maximum) {
      s.sum *= __builtin_exp(static_cast<double>(s.maximum) - static_cast<double>(most));
      s.maximum = most;
    }
    s.sum += static_cast<double>(sum_of_vectors(n, [=](std::int64_t i, auto part) {
      return kept(weight(load(chunk + i, part) - most), part);
    }));
  }
  return s;
}

// x = softmax(x) * scale.
template <class T>
void scale_to_softmax(T* x, std::int64_t vocabulary, const Softmax& s, float scale) {
  const auto factor = static_cast<float>(static_cast<double>(scale) / s.sum);
  each_vector(vocabulary, [=](std::int64_t i, auto part) {
    store(x + i, weight(load(x + i, part) - s.maximum) * factor, part);
  });
}

template <class T>
float row_loss(const CrossEntropy& p, T* x, std::int64_t target) {
  const Softmax s = softmax_of(x, p.vocabulary);
  const T chosen[kLanes] = {x[target]};
  // The logit of the target less the logarithm of the sum.
  const double log_chosen =
      static_cast<double>(load(chosen)[0]) - static_cast<double>(s.maximum) - __builtin_log(s.sum);
  if (!p.forward_only) {
    scale_to_softmax(x, p.vocabulary, s, p.scale);
    const double slope = (__builtin_exp(log_chosen) - 1) * static_cast<double>(p.scale);
    store(x + target, splat(static_cast<float>(slope)), Part{1});
  }
  return static_cast<float>(-log_chosen);
}

// A part's three numbers in SoftmaxPart::statistics.
constexpr std::int64_t kStatistics = 3;

template <class T>
void row_statistics(const SoftmaxPart& p, const T* x, std::int64_t target, double* statistics) {
  const Softmax s = softmax_of(x, p.vocabulary);
  statistics[0] = static_cast<double>(s.maximum);
  statistics[1] = s.sum;
  statistics[2] = 0;
  if (target >= p.first_id && target < p.first_id + p.vocabulary) {
    const T chosen[kLanes] = {x[target - p.first_id]};
    statistics[2] = static_cast<double>(load(chosen)[0]);
  }
}

// The softmax over all parts, and the target's logit, of row r.
struct Joined {
  Softmax softmax;
  double chosen = 0;
};
Joined join(const double* statistics, std::int64_t parts, std::int64_t rows, std::int64_t r) {
  Joined joined;
  double most = statistics[r * kStatistics];
  for (std::int64_t p = 1; p < parts; ++p) {
    const double maximum = statistics[(p * rows + r) * kStatistics];
    most = maximum > most ? maximum : most;
  }
  joined.softmax.maximum = static_cast<float>(most);
  for (std::int64_t p = 0; p < parts; ++p) {
    const double* part = statistics + (p * rows + r) * kStatistics;
    joined.softmax.sum += part[1] * __builtin_exp(part[0] - most);
    joined.chosen += part[2];
  }
  return joined;
}

template <class T>
float row_loss_of_parts(const CrossEntropyOfParts& p, T* x, std::int64_t target, const Joined& j) {
  const double log_chosen =
      j.chosen - static_cast<double>(j.softmax.maximum) - __builtin_log(j.softmax.sum);
  if (!p.own.forward_only) {
    scale_to_softmax(x, p.own.vocabulary, j.softmax, p.own.scale);
    const std::int64_t own = target - p.first_id;
    if (own >= 0 && own < p.own.vocabulary) {
      const double slope = (__builtin_exp(log_chosen) - 1) * static_cast<double>(p.own.scale);
      store(x + own, splat(static_cast<float>(slope)), Part{1});
    }
  }
  return static_cast<float>(-log_chosen);
}

}  // namespace

void softmax_part(Stream& stream, const SoftmaxPart& p) {
  by_type(p.logits.dtype, [&]<class T>(T) {
    const T* logits = as<T>(p.logits);
    const std::int32_t* targets = as<std::int32_t>(p.targets);
    double* statistics = as<double>(p.statistics);
    each_range(
        stream, p.rows, 1, p.rows * p.vocabulary, [=, &p](std::int64_t first, std::int64_t last) {
          for (std::int64_t r = first; r < last; ++r) {
            row_statistics(p, logits + r * p.vocabulary, targets[r], statistics + r * kStatistics);
          }
        });
  });
}

void cross_entropy_of_parts(Stream& stream, const CrossEntropyOfParts& p) {
  by_type(p.own.logits.dtype, [&]<class T>(T) {
    T* logits = as<T>(p.own.logits);
    const std::int32_t* targets = as<std::int32_t>(p.own.targets);
    const double* statistics = as<double>(p.statistics);
    float* losses = as<float>(p.own.losses);
    each_range(stream, p.own.rows, 1, p.own.rows * p.own.vocabulary,
               [=, &p](std::int64_t first, std::int64_t last) {
                 for (std::int64_t r = first; r < last; ++r) {
                   losses[r] = row_loss_of_parts(p, logits + r * p.own.vocabulary, targets[r],
                                                 join(statistics, p.parts, p.own.rows, r));
                 }
               });
  });
}

void cross_entropy(Stream& stream, const CrossEntropy& p) {
  check_ids(p.targets, p.rows, p.vocabulary);
  by_type(p.logits.dtype, [&]<class T>(T) {
    T* logits = as<T>(p.logits);
    const std::int32_t* targets = as<std::int32_t>(p.targets);
    float* losses = as<float>(p.losses);
    each_range(stream, p.rows, 1, p.rows * p.vocabulary,
               [=, &p](std::int64_t first, std::int64_t last) {
                 for (std::int64_t r = first; r < last; ++r) {
                   losses[r] = row_loss(p, logits + r * p.vocabulary, targets[r]);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
