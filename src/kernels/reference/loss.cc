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

}  // namespace trireme::reference
