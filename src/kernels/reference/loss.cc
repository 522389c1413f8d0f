#include <algorithm>

#include "src/kernels/ids.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {

void cross_entropy(Stream&, const CrossEntropy& p) {
  check_ids(p.targets, p.rows, p.vocabulary);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t first = row * p.vocabulary;
    const std::int64_t target = first + as<std::int32_t>(p.targets)[row];
    double most = at(p.logits, first);
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      most = std::max(most, at(p.logits, i));
    }
    double sum = 0;
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      sum += std::exp(at(p.logits, i) - most);
    }
    const double lse = most + std::log(sum);
    put(p.losses, row, lse - at(p.logits, target));
    for (std::int64_t i = first; !p.forward_only && i < first + p.vocabulary; ++i) {
      const double weight = std::exp(at(p.logits, i) - lse) - (i == target ? 1 : 0);
      put(p.logits, i, weight * static_cast<double>(p.scale));
    }
  }
}

void softmax_part(Stream&, const SoftmaxPart& p) {
  auto* statistics = as<double>(p.statistics);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t first = row * p.vocabulary;
    const std::int64_t target = as<std::int32_t>(p.targets)[row] - p.first_id;
    double most = at(p.logits, first);
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      most = std::max(most, at(p.logits, i));
    }
    double sum = 0;
    for (std::int64_t i = first; i < first + p.vocabulary; ++i) {
      sum += std::exp(at(p.logits, i) - most);
    }
    const bool here = target >= 0 && target < p.vocabulary;
    statistics[3 * row] = most;
    statistics[3 * row + 1] = sum;
    statistics[3 * row + 2] = here ? at(p.logits, first + target) : 0;
  }
}

void cross_entropy_of_parts(Stream&, const CrossEntropyOfParts& p) {
  const CrossEntropy& own = p.own;
  for (std::int64_t row = 0; row < own.rows; ++row) {
    const auto part = [&](std::int64_t i) {
      return as<double>(p.statistics) + 3 * (i * own.rows + row);
    };
    double most = part(0)[0];
    for (std::int64_t i = 1; i < p.parts; ++i) {
      most = std::max(most, part(i)[0]);
    }
    double sum = 0;
    double chosen = 0;
    for (std::int64_t i = 0; i < p.parts; ++i) {
      sum += part(i)[1] * std::exp(part(i)[0] - most);
      chosen += part(i)[2];
    }
    const double lse = most + std::log(sum);
    put(own.losses, row, lse - chosen);
    const std::int64_t first = row * own.vocabulary;
    const std::int64_t target = first + as<std::int32_t>(own.targets)[row] - p.first_id;
    for (std::int64_t i = first; !own.forward_only && i < first + own.vocabulary; ++i) {
      const double weight = std::exp(at(own.logits, i) - lse) - (i == target ? 1 : 0);
      put(own.logits, i, weight * static_cast<double>(own.scale));
    }
  }
}

}  // namespace trireme::reference
