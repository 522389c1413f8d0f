#include "src/plan/factor_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trireme {
namespace {

constexpr double kOutlier = 0.02;
constexpr int kRounds = 20;         // of least squares with new weights
constexpr int kMostChanges = 1000;  // more than a handful of factors need
constexpr double kRounding = 1e-9;

// Equations holds a x = b for a symmetric positive definite a [n,n].
struct Equations {
  std::vector<std::vector<double>> a;
  std::vector<double> b;  // [n]

  explicit Equations(std::size_t n) : a(n, std::vector<double>(n, 0)), b(n, 0) {}
  std::size_t size() const { return b.size(); }
};

// Solves by Gauss's elimination.
std::vector<double> solved(Equations e) {
  const std::size_t n = e.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = e.a[row][i] / e.a[i][i];
      for (std::size_t k = i; k < n; ++k) {
        e.a[row][k] -= factor * e.a[i][k];
      }
      e.b[row] -= factor * e.b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) {
      e.b[i] -= e.a[i][k] * e.b[k];
    }
    e.b[i] /= e.a[i][i];
  }
  return e.b;
}

// Returns the x without an element below 0 that comes nearest to a x = b. Setting the elements
// below 0 of the solution to 0 would not do: the others were solved to make up for them. Elements
// are kept at 0 or let go, each time the first one that is wrong where it is, which ends for every
// positive definite a (Murty, Note on a Bard-type scheme for solving the complementarity problem,
// 1974).
std::vector<double> solved_from_0(const Equations& e) {
  const std::size_t n = e.size();
  std::vector<bool> kept(n, false);  // at 0
  std::vector<double> x;
  for (int change = 0; change < kMostChanges; ++change) {
    Equations free = e;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) {
        if (kept[i] || kept[k]) {
          free.a[i][k] = i == k ? 1 : 0;
        }
      }
      free.b[i] = kept[i] ? 0 : e.b[i];
    }
    x = solved(std::move(free));
    std::size_t wrong = 0;
    for (; wrong < n; ++wrong) {
      const double slope =
          std::inner_product(x.begin(), x.end(), e.a[wrong].begin(), 0.0) - e.b[wrong];
      if (kept[wrong] ? slope < -kRounding : x[wrong] < 0) {
        break;
      }
    }
    if (wrong == n) {
      break;
    }
    kept[wrong] = !kept[wrong];
  }
  for (double& element : x) {
    element = std::max(element, 0.0);  // of rounding, or of an a that is hardly positive definite
  }
  return x;
}

// Adds the inverse of the prior's covariance, diag(own^2) + common^2 (Sherman and Morrison), in
// units of the noise.
void add_prior(const FactorPrior& prior, Equations& e) {
  const double unit = prior.noise * prior.noise;
  std::vector<double> precision;
  for (const double deviation : prior.own) {
    precision.push_back(1 / (deviation * deviation));
  }
  const double sum = std::accumulate(precision.begin(), precision.end(), 0.0);
  const double shared = 1 / (1 / (prior.common * prior.common) + sum);
  for (std::size_t i = 0; i < e.size(); ++i) {
    for (std::size_t k = 0; k < e.size(); ++k) {
      const double entry =
          unit * ((i == k ? precision[i] : 0) - precision[i] * precision[k] * shared);
      e.a[i][k] += entry;
      e.b[i] += entry;  // times 1, the factor that is expected
    }
  }
}

void add_row(const std::vector<double>& x, double weight, Equations& e) {
  for (std::size_t i = 0; i < e.size(); ++i) {
    for (std::size_t k = 0; k < e.size(); ++k) {
      e.a[i][k] += weight * x[i] * x[k];
    }
    e.b[i] += weight * x[i];
  }
}

}  // namespace

std::vector<double> fit_to_ones(const std::vector<std::vector<double>>& rows,
                                const FactorPrior& prior) {
  std::vector<double> fitted(prior.own.size(), 1);
  for (int round = 0; round < kRounds; ++round) {
    Equations e(fitted.size());
    add_prior(prior, e);
    for (const std::vector<double>& row : rows) {
      const double sum = std::inner_product(row.begin(), row.end(), fitted.begin(), 0.0);
      const double error = std::abs(sum - 1);
      add_row(row, std::min(1.0, kOutlier / std::max(error, kOutlier / 100)), e);
    }
    fitted = solved_from_0(e);
  }
  return fitted;
}

}  // namespace trireme
