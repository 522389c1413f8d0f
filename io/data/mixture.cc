#include "io/data/mixture.h"

#include <algorithm>
#include <numeric>

#include "src/base/check.h"

namespace trireme {
namespace {

__extension__ using Wide = __int128;  // no standard type holds the products

constexpr std::int64_t kMostWeight = std::int64_t{1} << 62;

// Returns round(n * part / whole), half a sample rounded up: how many of the first n samples go to
// a side that has `part` of the weights. Precondition: 0 <= part <= whole, whole > 0.
std::int64_t share(std::int64_t n, std::int64_t part, std::int64_t whole) {
  const auto product = static_cast<Wide>(n) * part + whole / 2;
  return static_cast<std::int64_t>(product / whole);
}

// Subtree is a node: the sources [first, end).
struct Subtree {
  std::size_t first = 0;
  std::size_t end = 0;
  std::size_t middle() const { return first + (end - first) / 2; }
  bool is_leaf() const { return end - first == 1; }
};

// Returns how many of the first n samples at a node go to its left side.
std::int64_t left_share(const std::vector<std::int64_t>& sums, const Subtree& node,
                        std::int64_t n) {
  const std::int64_t whole = sums[node.end] - sums[node.first];
  // No sample arrives at a node without weight.
  return whole == 0 ? 0 : share(n, sums[node.middle()] - sums[node.first], whole);
}

// Returns how many of the first n samples of a phase come from a source.
std::int64_t count_in_phase(const std::vector<std::int64_t>& sums, std::size_t source,
                            std::int64_t n) {
  Subtree node{0, sums.size() - 1};
  while (!node.is_leaf()) {
    const std::int64_t left = left_share(sums, node, n);
    const bool is_left = source < node.middle();
    n = is_left ? left : n - left;
    (is_left ? node.end : node.first) = node.middle();
  }
  return n;
}

// Divides the weights by their greatest common divisor, which makes the exact multiples as short as
// possible, and returns their sums.
std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& weights) {
  std::int64_t divisor = 0;
  for (const std::int64_t weight : weights) {
    check(weight >= 0, "a weight is not negative");
    divisor = std::gcd(divisor, weight);
  }
  check(divisor > 0, "one of the weights is positive");
  std::vector<std::int64_t> sums = {0};
  for (const std::int64_t weight : weights) {
    check(weight / divisor < kMostWeight - sums.back(), "the weights have a sum below 2^62");
    sums.push_back(sums.back() + weight / divisor);
  }
  return sums;
}

}  // namespace

Mixture::Mixture() : Mixture(std::vector<MixtureWeights>{{0, {1}}}) {}

Mixture::Mixture(const std::vector<MixtureWeights>& phases) {
  check(!phases.empty() && phases.front().first_sample == 0 && !phases.front().weights.empty(),
        "a mixture has sources, and weights from the first sample on");
  sources_ = phases.front().weights.size();
  std::vector<std::int64_t> before(sources_, 0);
  for (const MixtureWeights& each : phases) {
    check(each.weights.size() == sources_, "each phase has the weights of all sources");
    if (!phases_.empty()) {
      const Phase& last = phases_.back();
      check(each.first_sample > last.first_sample, "phases rise");
      for (std::size_t source = 0; source < sources_; ++source) {
        before[source] += count_in_phase(last.sums, source, each.first_sample - last.first_sample);
      }
    }
    phases_.push_back({each.first_sample, sums_of(each.weights), before});
  }
}

const Mixture::Phase& Mixture::phase_of(std::int64_t n) const {
  const auto after = std::upper_bound(
      phases_.begin(), phases_.end(), n,
      [](std::int64_t number, const Phase& phase) { return number < phase.first_sample; });
  check(after != phases_.begin(), "a sample of a run is not negative");
  return *std::prev(after);
}

MixturePlace Mixture::operator()(std::int64_t n) const {
  const Phase& phase = phase_of(n);
  n -= phase.first_sample;
  Subtree node{0, sources_};
  while (!node.is_leaf()) {
    const std::int64_t left = left_share(phase.sums, node, n);
    const bool is_left = left_share(phase.sums, node, n + 1) > left;
    n = is_left ? left : n - left;
    (is_left ? node.end : node.first) = node.middle();
  }
  return {node.first, phase.before[node.first] + n};
}

std::int64_t Mixture::count(std::size_t source, std::int64_t n) const {
  check(source < sources_, "the source is one of the mixture");
  const Phase& phase = phase_of(n);
  return phase.before[source] + count_in_phase(phase.sums, source, n - phase.first_sample);
}

}  // namespace trireme
