#include <algorithm>

#include "src/base/ignored_target.h"
#include "src/kernels/ids.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

// Returns the logarithm of the sum of exp(x / temperature) over logits [first, first + count).
double log_sum(const ConstView& logits, std::int64_t first, std::int64_t count,
               double temperature) {
  double most = at(logits, first);
  for (std::int64_t i = first; i < first + count; ++i) {
    most = std::max(most, at(logits, i));
  }
  double sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    sum += std::exp((at(logits, i) - most) / temperature);
  }
  return most / temperature + std::log(sum);
}

double divergence_of_row(const Distillation& p, std::int64_t first) {
  const auto temperature = static_cast<double>(p.temperature);
  const double own = log_sum(p.logits, first, p.vocabulary, temperature);
  const double taught = log_sum(p.teacher, first, p.vocabulary, temperature);
  double divergence = 0;
  for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
    const double log_p = at(p.teacher, i) / temperature - taught;
    const double log_q = at(p.logits, i) / temperature - own;
    divergence += std::exp(log_p) * (log_p - log_q);
    if (!p.forward_only) {
      put(p.teacher, i,
          static_cast<double>(p.scale) / temperature * (std::exp(log_q) - std::exp(log_p)));
    }
  }
  return divergence;
}

}  // namespace

void distillation(Stream&, const Distillation& p) {
  check_targets(p.targets, p.rows, p.vocabulary);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t first = row * p.row();
    if (as<std::int32_t>(p.targets)[row] != kIgnoredTarget) {
      put(p.divergences, row, divergence_of_row(p, first));
      continue;
    }
    put(p.divergences, row, 0);
    for (std::int64_t i = first; i < first + p.vocabulary && !p.forward_only; ++i) {
      put(p.teacher, i, 0);
    }
  }
}

}  // namespace trireme::reference
