#include "src/study/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/base/check.h"
#include "src/base/median.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::uint32_t kDraws = 1000;

// Draws whole numbers for one draw of the bootstrap.
class Draw {
 public:
  Draw(std::uint32_t point, std::uint32_t draw) : point_(point), draw_(draw) {}
  std::size_t below(std::size_t count) {
    return philox({next_++, draw_, point_, 0}, philox_key(0x7363616c))[0] % count;
  }

 private:
  std::uint32_t point_;
  std::uint32_t draw_;
  std::uint32_t next_ = 0;
};

double drawn_median(const ScalePoint& point, Draw draw) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < point.step_ms.size(); ++i) {
    const std::vector<double>& steps = point.step_ms[draw.below(point.step_ms.size())];
    std::vector<double> drawn(steps.size());
    for (double& step : drawn) {
      step = steps[draw.below(steps.size())];
    }
    medians.push_back(median(std::move(drawn)));
  }
  return median(std::move(medians));
}

double growth(const Scaling& point, const std::vector<Scaling>& points) {
  return static_cast<double>(point.nodes) / points.front().nodes;
}

template <class Law>
void add_residuals(const std::vector<Scaling>& points, const Law& law, ScalingFit& fit) {
  double squares = 0;
  for (const Scaling& point : points) {
    fit.residuals.push_back(point.speedup - law(growth(point, points)));
    squares += fit.residuals.back() * fit.residuals.back();
  }
  fit.rms_residual = std::sqrt(squares / static_cast<double>(points.size()));
}

}  // namespace

double ScalePoint::median_ms() const {
  std::vector<double> medians;
  for (const std::vector<double>& steps : step_ms) {
    medians.push_back(median(steps));
  }
  return median(std::move(medians));
}

std::vector<Scaling> scaling_of(const std::vector<ScalePoint>& points, bool weak) {
  std::vector<Scaling> all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    check(!points[i].step_ms.empty(), "a point of a scaling study has steps");
    const double nodes = static_cast<double>(points[i].nodes) / points[0].nodes;
    const auto efficiency = [&](double base, double own) {
      return weak ? base / own : base / own / nodes;
    };
    std::vector<double> drawn;
    for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
      const double base = drawn_median(points[0], Draw(0, draw));
      const double own = drawn_median(points[i], Draw(static_cast<std::uint32_t>(i), draw));
      drawn.push_back(efficiency(base, own));
    }
    std::sort(drawn.begin(), drawn.end());
    Scaling scaling{points[i].nodes, points[i].median_ms(), 1, {}};
    scaling.efficiency = {efficiency(points[0].median_ms(), scaling.step_ms), drawn[kDraws / 40],
                          drawn[kDraws - 1 - kDraws / 40]};
    scaling.speedup = scaling.efficiency.estimate * nodes;
    all.push_back(scaling);
  }
  return all;
}

std::optional<ScalingFit> fit_serial_fraction(const std::vector<Scaling>& points, bool weak) {
  if (points.size() < 2) {
    return std::nullopt;
  }
  // Both laws are linear in s: 1 / S - 1 / n = s (1 - 1 / n), and n - S = s (n - 1).
  double products = 0;
  double squares = 0;
  for (const Scaling& point : points) {
    const double n = growth(point, points);
    const double x = weak ? n - 1 : 1 - 1 / n;
    const double y = weak ? n - point.speedup : 1 / point.speedup - 1 / n;
    products += x * y;
    squares += x * x;
  }
  ScalingFit fit;
  fit.serial = std::clamp(products / squares, 0.0, 1.0);
  add_residuals(
      points,
      [&](double n) {
        return weak ? n - fit.serial * (n - 1) : 1 / (fit.serial + (1 - fit.serial) / n);
      },
      fit);
  return fit;
}

std::optional<ScalingFit> fit_usl(const std::vector<Scaling>& points) {
  if (points.size() < 3) {
    return std::nullopt;
  }
  // n / S - 1 = a (n - 1) + b n (n - 1) is linear in a and b.
  double xx = 0;
  double xz = 0;
  double zz = 0;
  double xy = 0;
  double zy = 0;
  for (const Scaling& point : points) {
    const double n = growth(point, points);
    const double x = n - 1;
    const double z = n * (n - 1);
    const double y = n / point.speedup - 1;
    xx += x * x;
    xz += x * z;
    zz += z * z;
    xy += x * y;
    zy += z * y;
  }
  ScalingFit fit;
  const double determinant = xx * zz - xz * xz;
  fit.contention = (xy * zz - zy * xz) / determinant;
  fit.coherency = (zy * xx - xy * xz) / determinant;
  if (fit.coherency < 0) {
    fit.coherency = 0;
    fit.contention = xy / xx;
  } else if (fit.contention < 0) {
    fit.contention = 0;
    fit.coherency = zy / zz;
  }
  fit.contention = std::max(fit.contention, 0.0);
  fit.coherency = std::max(fit.coherency, 0.0);
  add_residuals(
      points,
      [&](double n) { return n / (1 + fit.contention * (n - 1) + fit.coherency * n * (n - 1)); },
      fit);
  if (fit.coherency > 0 && fit.contention < 1) {
    fit.peak_nodes = points.front().nodes * std::sqrt((1 - fit.contention) / fit.coherency);
  }
  return fit;
}

const Scaling* first_uncertain(const std::vector<Scaling>& points, std::size_t knee, double least) {
  for (std::size_t i = 1; i < points.size() && i <= knee + 1; ++i) {
    const Interval& efficiency = points[i].efficiency;
    if (i <= knee ? efficiency.low < least : efficiency.high >= least) {
      return &points[i];
    }
  }
  return nullptr;
}

std::size_t knee_of(const std::vector<Scaling>& points, double least) {
  std::size_t knee = 0;
  while (knee + 1 < points.size() && points[knee + 1].efficiency.estimate >= least) {
    ++knee;
  }
  return knee;
}

}  // namespace trireme
