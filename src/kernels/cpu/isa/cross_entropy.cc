#include <cfloat>

#include "src/base/ignored_target.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/ids.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// The number of logits read at a time. Their maximum and exponentials are taken while they are in
// the L1 cache, so that a row is read from memory once.
constexpr std::int64_t kChunk = 2048;

// Returns e^x for x <= 0. It is zero for a logit of -infinity, and NaN for NaN.
TRIREME_INLINE Floats weight(Floats x) { return exp2(max(splat(-150.0F), x * kLog2E)); }

template <class T>
TRIREME_INLINE float largest(const T* x, std::int64_t n, float least) {
  Floats most = splat(least);
  each_vector(
      n, [&](std::int64_t i, auto part) { most = max(most, kept(load(x + i, part), part, most)); });
  return max_of_lanes(most);
}

// Softmax holds the maximum of a row so far, and the sum of exp(x - maximum).
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

template <class T>
double sum_of_logits(const T* x, std::int64_t vocabulary) {
  double sum = 0;
  for (std::int64_t first = 0; first < vocabulary; first += kChunk) {
    const std::int64_t n = vocabulary - first < kChunk ? vocabulary - first : kChunk;
    sum += static_cast<double>(sum_of_vectors(
        n, [=](std::int64_t i, auto part) { return kept(load(x + first + i, part), part); }));
  }
  return sum;
}

// Row holds the values from which the loss of a row and its gradient are computed.
struct Row {
  Softmax softmax;
  double chosen = 0;      // the target's logit
  double sum = 0;         // sum of all logits; 0 without label smoothing
  double vocabulary = 1;  // number of ids over all parts

  double log_sum() const {
    return static_cast<double>(softmax.maximum) + __builtin_log(softmax.sum);
  }
  // Returns the logarithm of the target's probability.
  double log_chosen() const {
    return chosen - static_cast<double>(softmax.maximum) - __builtin_log(softmax.sum);
  }
};

float loss_of(const LossTerms& terms, const Row& row) {
  double loss = -row.log_chosen();
  if (terms.label_smoothing > 0) {
    const auto smoothing = static_cast<double>(terms.label_smoothing);
    loss += smoothing * (row.chosen - row.sum / row.vocabulary);
  }
  if (terms.z_loss > 0) {
    loss += static_cast<double>(terms.z_loss) * row.log_sum() * row.log_sum();
  }
  return static_cast<float>(loss);
}

// Replaces the logits x[vocabulary] by their gradients. target: the target's index in x, or an
// index outside of x if another part holds it.
template <class T>
void put_gradients(const CrossEntropy& p, T* x, std::int64_t target, const Row& row) {
  const auto scale = static_cast<double>(p.scale);
  const auto smoothing = static_cast<double>(p.terms.label_smoothing);
  // The z-loss scales the softmax term of the gradient.
  const double more = 1 + 2 * static_cast<double>(p.terms.z_loss) * row.log_sum();
  const bool plain = p.terms.z_loss == 0;
  const double softmax_scale = plain ? scale : scale * more;
  const double shift = scale * smoothing / row.vocabulary;
  const auto factor = static_cast<float>(softmax_scale / row.softmax.sum);
  const auto less = static_cast<float>(shift);
  const float maximum = row.softmax.maximum;
  each_vector(p.vocabulary, [=](std::int64_t i, auto part) {
    store(x + i, weight(load(x + i, part) - maximum) * factor - less, part);
  });
  if (target >= 0 && target < p.vocabulary) {
    const double probability = __builtin_exp(row.log_chosen());
    const double slope =
        ((plain ? probability : more * probability) - (1 - smoothing)) * scale - shift;
    store(x + target, splat(static_cast<float>(slope)), Part{1});
  }
}

// Handles a row whose target is ignored.
template <class T>
float ignored_loss(const CrossEntropy& p, T* x) {
  if (!p.forward_only) {
    each_vector(p.vocabulary, [=](std::int64_t i, auto part) { store(x + i, splat(0.0F), part); });
  }
  return 0;
}

template <class T>
double logit(const T& x) {
  const T first[kLanes] = {x};
  return static_cast<double>(load(first)[0]);
}

template <class T>
float row_loss(const CrossEntropy& p, T* x, std::int64_t target) {
  if (target == kIgnoredTarget) {
    return ignored_loss(p, x);
  }
  const Row row{softmax_of(x, p.vocabulary), logit(x[target]),
                p.terms.label_smoothing > 0 ? sum_of_logits(x, p.vocabulary) : 0,
                static_cast<double>(p.vocabulary)};
  if (!p.forward_only) {
    put_gradients(p, x, target, row);
  }
  return loss_of(p.terms, row);
}

template <class T>
void row_statistics(const SoftmaxPart& p, const T* x, std::int64_t target, double* statistics) {
  const Softmax s = softmax_of(x, p.vocabulary);
  const bool here = target >= p.first_id && target < p.first_id + p.vocabulary;
  statistics[0] = static_cast<double>(s.maximum);
  statistics[1] = s.sum;
  statistics[2] = here ? logit(x[target - p.first_id]) : 0;
  statistics[3] = p.sum_logits ? sum_of_logits(x, p.vocabulary) : 0;
}

// Combines the statistics of row r over all parts.
Row join(const CrossEntropyOfParts& p, const double* statistics, std::int64_t r) {
  const std::int64_t rows = p.own.rows;
  Row row;
  double most = statistics[r * kRowStatistics];
  for (std::int64_t i = 1; i < p.parts; ++i) {
    const double maximum = statistics[(i * rows + r) * kRowStatistics];
    most = maximum > most ? maximum : most;
  }
  row.softmax.maximum = static_cast<float>(most);
  row.vocabulary = static_cast<double>(p.whole_vocabulary > 0 ? p.whole_vocabulary : 1);
  for (std::int64_t i = 0; i < p.parts; ++i) {
    const double* part = statistics + (i * rows + r) * kRowStatistics;
    row.softmax.sum += part[1] * __builtin_exp(part[0] - most);
    row.chosen += part[2];
    row.sum += part[3];
  }
  return row;
}

template <class T>
float row_loss_of_parts(const CrossEntropyOfParts& p, T* x, std::int64_t target, const Row& row) {
  if (target == kIgnoredTarget) {
    return ignored_loss(p.own, x);
  }
  if (!p.own.forward_only) {
    put_gradients(p.own, x, target - p.first_id, row);
  }
  return loss_of(p.own.terms, row);
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
            row_statistics(p, logits + r * p.row(), targets[r], statistics + r * kRowStatistics);
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
                   losses[r] = row_loss_of_parts(p, logits + r * p.own.row(), targets[r],
                                                 join(p, statistics, r));
                 }
               });
  });
}

void cross_entropy(Stream& stream, const CrossEntropy& p) {
  check_targets(p.targets, p.rows, p.vocabulary);
  by_type(p.logits.dtype, [&]<class T>(T) {
    T* logits = as<T>(p.logits);
    const std::int32_t* targets = as<std::int32_t>(p.targets);
    float* losses = as<float>(p.losses);
    each_range(stream, p.rows, 1, p.rows * p.vocabulary,
               [=, &p](std::int64_t first, std::int64_t last) {
                 for (std::int64_t r = first; r < last; ++r) {
                   losses[r] = row_loss(p, logits + r * p.row(), targets[r]);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
