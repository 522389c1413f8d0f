#include <algorithm>

#include "src/base/ignored_target.h"
#include "src/kernels/ids.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {

namespace {

// Row holds the statistics of a row over its whole vocabulary.
struct Row {
  double lse = 0;     // logarithm of the sum of exponentials
  double chosen = 0;  // the target's logit
  double mean = 0;    // mean of all logits
};

double loss_of(const LossTerms& terms, const Row& row) {
  const auto smoothing = static_cast<double>(terms.label_smoothing);
  const auto z = static_cast<double>(terms.z_loss);
  return row.lse - (1 - smoothing) * row.chosen - smoothing * row.mean + z * row.lse * row.lse;
}

// Replaces the logits [first, first + p.vocabulary) by their gradients. target: the element of the
// target's logit, or one outside the range if another part holds it.
void put_gradients(const CrossEntropy& p, std::int64_t first, std::int64_t target, const Row& row,
                   std::int64_t whole_vocabulary) {
  const auto smoothing = static_cast<double>(p.terms.label_smoothing);
  const double factor = 1 + 2 * static_cast<double>(p.terms.z_loss) * row.lse;
  for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
    const double weight = std::exp(at(p.logits, i) - row.lse);
    const double slope = factor * weight - (i == target ? 1 - smoothing : 0) -
                         smoothing / static_cast<double>(whole_vocabulary);
    put(p.logits, i, slope * static_cast<double>(p.scale));
  }
}

// Handles a row whose target is ignored. Returns false for any other.
bool is_ignored(const CrossEntropy& p, std::int64_t row) {
  if (as<std::int32_t>(p.targets)[row] != kIgnoredTarget) {
    return false;
  }
  put(p.losses, row, 0);
  for (std::int64_t i = 0; i < p.vocabulary && !p.forward_only; ++i) {
    put(p.logits, row * p.row() + i, 0);
  }
  return true;
}

}  // namespace

void cross_entropy(Stream&, const CrossEntropy& p) {
  check_targets(p.targets, p.rows, p.vocabulary);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    if (is_ignored(p, row)) {
      continue;
    }
    const std::int64_t first = row * p.row();
    const std::int64_t target = first + as<std::int32_t>(p.targets)[row];
    double most = at(p.logits, first);
    double logits = 0;
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      most = std::max(most, at(p.logits, i));
      logits += at(p.logits, i);
    }
    double sum = 0;
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      sum += std::exp(at(p.logits, i) - most);
    }
    // Without label smoothing the mean is 0, so that a logit of -infinity does not affect the loss.
    const bool smooth = p.terms.label_smoothing > 0;
    const Row whole{most + std::log(sum), at(p.logits, target),
                    smooth ? logits / static_cast<double>(p.vocabulary) : 0};
    put(p.losses, row, loss_of(p.terms, whole));
    if (!p.forward_only) {
      put_gradients(p, first, target, whole, p.vocabulary);
    }
  }
}

void softmax_part(Stream&, const SoftmaxPart& p) {
  auto* statistics = as<double>(p.statistics);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t first = row * p.row();
    const std::int64_t target = as<std::int32_t>(p.targets)[row] - p.first_id;
    double most = at(p.logits, first);
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      most = std::max(most, at(p.logits, i));
    }
    double sum = 0;
    double logits = 0;
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      sum += std::exp(at(p.logits, i) - most);
      logits += at(p.logits, i);
    }
    const bool here = target >= 0 && target < p.vocabulary;
    double* const own = statistics + row * kRowStatistics;
    own[0] = most;
    own[1] = sum;
    own[2] = here ? at(p.logits, first + target) : 0;
    own[3] = p.sum_logits ? logits : 0;
  }
}

void cross_entropy_of_parts(Stream&, const CrossEntropyOfParts& p) {
  const CrossEntropy& own = p.own;
  for (std::int64_t row = 0; row < own.rows; ++row) {
    if (is_ignored(own, row)) {
      continue;
    }
    const auto part = [&](std::int64_t i) {
      return as<double>(p.statistics) + kRowStatistics * (i * own.rows + row);
    };
    double most = part(0)[0];
    for (std::int64_t i = 1; i < p.parts; ++i) {
      most = std::max(most, part(i)[0]);
    }
    double sum = 0;
    Row whole;
    for (std::int64_t i = 0; i < p.parts; ++i) {
      sum += part(i)[1] * std::exp(part(i)[0] - most);
      whole.chosen += part(i)[2];
      whole.mean += part(i)[3];
    }
    whole.lse = most + std::log(sum);
    whole.mean /= static_cast<double>(std::max<std::int64_t>(p.whole_vocabulary, 1));
    put(own.losses, row, loss_of(own.terms, whole));
    if (!own.forward_only) {
      const std::int64_t first = row * own.row();
      const std::int64_t target = as<std::int32_t>(own.targets)[row] - p.first_id;
      const bool here = target >= 0 && target < own.vocabulary;
      put_gradients(own, first, here ? first + target : -1, whole,
                    std::max<std::int64_t>(p.whole_vocabulary, 1));
    }
  }
}

}  // namespace trireme::reference
