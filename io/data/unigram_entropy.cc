#include "io/data/unigram_entropy.h"

#include <cmath>

namespace trireme {

double unigram_entropy(const TokenCounts& counts) {
  double nats = 0;
  for (const std::int64_t count : counts.by_token) {
    if (count > 0) {
      const double p = static_cast<double>(count) / static_cast<double>(counts.tokens);
      nats -= p * std::log(p);
    }
  }
  return nats;
}

}  // namespace trireme
