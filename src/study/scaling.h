// Computes speedups, efficiencies and the fits of two laws from the step times of runs on several
// numbers of nodes. Pure functions.
#pragma once

#include <optional>
#include <vector>

namespace trireme {

struct Interval {
  double estimate = 0;
  double low = 0;  // bounds of the 95 % confidence interval
  double high = 0;
};

// The step times of one number of nodes: one list for each repetition.
struct ScalePoint {
  int nodes = 1;
  std::vector<std::vector<double>> step_ms;

  double median_ms() const;  // median over the repetitions of their medians
};

struct Scaling {
  int nodes = 1;
  double step_ms = 0;
  // How much more work per time than the smallest number of nodes does: T(p0) / T(p) for the same
  // work, and that times p / p0 if the work grows with the nodes.
  double speedup = 1;
  Interval efficiency;  // speedup divided by p / p0
};

// points: sorted by nodes; the first one is the base. The interval comes from a bootstrap that
// draws repetitions, and then steps within each (Davison and Hinkley, 1997, section 3.8; 1,000
// draws, the same in every call).
std::vector<Scaling> scaling_of(const std::vector<ScalePoint>& points, bool weak);

// A law of scaling, fitted by least squares.
struct ScalingFit {
  // Amdahl (1967), for the same work: 1 / (s + (1 - s) / n). Gustafson (1988), for work that grows
  // with the nodes: n - s (n - 1). `serial` is s.
  // USL (Gunther, 2007): n / (1 + a (n - 1) + b n (n - 1)). `contention` is a, `coherency` b.
  double serial = 0;
  double contention = 0;
  double coherency = 0;
  std::vector<double> residuals;  // measured minus fitted speedup of each point
  double rms_residual = 0;
  // Where the speedup of the USL is largest, in nodes; empty if it grows without end.
  std::optional<double> peak_nodes;
};
// Need two numbers of nodes, and three for the USL; otherwise return nothing. n is nodes / nodes of
// the first point. Parameters are at least 0.
std::optional<ScalingFit> fit_serial_fraction(const std::vector<Scaling>& points, bool weak);
std::optional<ScalingFit> fit_usl(const std::vector<Scaling>& points);

// Returns the index of the knee: the largest number of nodes up to which the efficiency of each
// point is at least `least`. The first point always qualifies.
std::size_t knee_of(const std::vector<Scaling>& points, double least);
// Returns the first point after the base, up to the one after the knee, whose interval includes
// `least`, so that another measurement might find another knee; null if there is none.
const Scaling* first_uncertain(const std::vector<Scaling>& points, std::size_t knee, double least);

}  // namespace trireme
