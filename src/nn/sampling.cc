#include "src/nn/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

struct Candidate {
  std::int32_t id;
  double weight;  // first the logit, then the probability times a common factor
};

// Returns a number in [0, 1) of 53 random bits, a function of seed and position.
double uniform(std::uint64_t seed, std::int64_t position) {
  const auto p = static_cast<std::uint64_t>(position);
  const PhiloxCounter bits = philox(
      {static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(p >> 32), 0, 0}, philox_key(seed));
  return static_cast<double>((std::uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

// Returns the `most` most likely candidates (0: all), the most likely first.
std::vector<Candidate> ordered(std::span<const float> logits, std::int64_t most) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) {
      all.push_back({static_cast<std::int32_t>(i), static_cast<double>(logits[i])});
    }
  }
  if (all.empty()) {
    throw DataError("all logits are NaN: the model's weights have diverged or are damaged");
  }
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.id < b.id);
  };
  const auto kept =
      most > 0 ? std::min<std::size_t>(all.size(), static_cast<std::size_t>(most)) : all.size();
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    before);
  all.resize(kept);
  return all;
}

// Replaces the logits x by weights exp((x - max) / temperature) and returns the sum of these. The
// weight of an infinite maximum is 1.
double exponentiate(std::vector<Candidate>& candidates, double temperature) {
  const double most = candidates.front().weight;
  double sum = 0;
  for (Candidate& c : candidates) {
    c.weight = c.weight == most ? 1 : std::exp((c.weight - most) / temperature);
    sum += c.weight;
  }
  return sum;
}

}  // namespace

void SamplingOptions::validate() const {
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    throw ConfigError(fmt::format("--temperature is {}: it must be 0 or more", temperature));
  }
  if (top_k < 0) {
    throw ConfigError(fmt::format("--top-k is {}: it must be 0 (all) or more", top_k));
  }
  if (!(top_p > 0 && top_p <= 1)) {
    throw ConfigError(fmt::format("--top-p is {}: it must be above 0 and at most 1", top_p));
  }
}

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          std::int64_t position) {
  std::vector<Candidate> candidates = ordered(logits, options.temperature == 0 ? 1 : options.top_k);
  if (candidates.size() == 1) {
    return candidates.front().id;
  }
  const double sum = exponentiate(candidates, options.temperature);
  double kept = 0;
  std::size_t count = 0;
  while (count < candidates.size() && (count == 0 || kept < options.top_p * sum)) {
    kept += candidates[count++].weight;
  }
  double left = uniform(options.seed, position) * kept;
  for (std::size_t i = 0; i < count; ++i) {
    left -= candidates[i].weight;
    if (left < 0) {
      return candidates[i].id;
    }
  }
  return candidates.front().id;
}

}  // namespace trireme
