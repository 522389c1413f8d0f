#include "io/quality/token_drift.h"

#include <algorithm>
#include <cmath>

#include "src/base/check.h"

namespace trireme {
namespace {

double share(const TokenCounts& counts, std::size_t token) {
  return static_cast<double>(counts.by_token[token]) / static_cast<double>(counts.tokens);
}

// Returns p log2(p / m), or 0 for p = 0.
double part(double p, double m) { return p > 0 ? p * std::log2(p / m) : 0; }

// Moments are the mean and the variance of each channel over the tokens of a dataset.
struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;
};

Moments moments_of(const TokenCounts& counts, const std::vector<float>& embedding) {
  const std::size_t channels = embedding.size() / counts.by_token.size();
  Moments moments{std::vector<double>(channels), std::vector<double>(channels)};
  const auto add = [&](auto&& term, std::vector<double>& sums) {
    for (std::size_t token = 0; token < counts.by_token.size(); ++token) {
      if (counts.by_token[token] == 0) {
        continue;
      }
      const double p = share(counts, token);
      for (std::size_t c = 0; c < channels; ++c) {
        sums[c] += p * term(static_cast<double>(embedding[token * channels + c]), c);
      }
    }
  };
  add([](double x, std::size_t) { return x; }, moments.mean);
  add([&](double x, std::size_t c) { return (x - moments.mean[c]) * (x - moments.mean[c]); },
      moments.variance);
  return moments;
}

}  // namespace

TokenDrift token_drift(const TokenCounts& before, const TokenCounts& after, std::size_t most) {
  check(before.by_token.size() == after.by_token.size(), "the vocabularies are the same");
  check(before.tokens > 0 && after.tokens > 0, "there are tokens");
  TokenDrift drift;
  for (std::size_t token = 0; token < before.by_token.size(); ++token) {
    const double p = share(before, token);
    const double q = share(after, token);
    const double m = (p + q) / 2;
    const double bits = (part(p, m) + part(q, m)) / 2;
    drift.divergence += bits;
    drift.unseen += p == 0 ? q : 0;
    if (bits > 0) {
      drift.moved.push_back({static_cast<std::int64_t>(token), p, q, bits});
    }
  }
  const auto end =
      drift.moved.begin() + static_cast<std::ptrdiff_t>(std::min(most, drift.moved.size()));
  std::partial_sort(drift.moved.begin(), end, drift.moved.end(),
                    [](const MovedToken& a, const MovedToken& b) {
                      return a.bits != b.bits ? a.bits > b.bits : a.token < b.token;
                    });
  drift.moved.erase(end, drift.moved.end());
  return drift;
}

EmbeddingDrift embedding_drift(const TokenCounts& before, const TokenCounts& after,
                               const std::vector<float>& embedding) {
  check(before.by_token.size() == after.by_token.size(), "the vocabularies are the same");
  check(embedding.size() % before.by_token.size() == 0, "the embedding has whole rows");
  const Moments p = moments_of(before, embedding);
  const Moments q = moments_of(after, embedding);
  double distance = 0;  // squared, of the means
  double spread = 0;    // sigma_p^2
  double dot = 0;
  double squares_p = 0;
  double squares_q = 0;
  EmbeddingDrift drift;
  for (std::size_t c = 0; c < p.mean.size(); ++c) {
    const double step = q.mean[c] - p.mean[c];
    const double widening = std::sqrt(q.variance[c]) - std::sqrt(p.variance[c]);
    distance += step * step;
    spread += p.variance[c];
    drift.frechet += widening * widening;
    dot += p.mean[c] * q.mean[c];
    squares_p += p.mean[c] * p.mean[c];
    squares_q += q.mean[c] * q.mean[c];
  }
  drift.frechet += distance;
  drift.shift = distance == 0 ? 0 : std::sqrt(distance / spread);
  const double norms = std::sqrt(squares_p * squares_q);
  drift.cosine = norms == 0 ? 1 : dot / norms;
  return drift;
}

}  // namespace trireme
