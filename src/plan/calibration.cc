#include "src/plan/calibration.h"

#include <algorithm>
#include <cmath>

#include "src/base/check.h"
#include "src/plan/factor_fit.h"
#include "src/plan/step_parts.h"

namespace trireme {
namespace {

// This is the prior of the factors of products, head, attention and kernels. A machine may be ten
// times slower than its file says, but then in all four: if the steps do not tell them apart, no
// factor may take all of the time.
const FactorPrior kAlike{.own = {0.5, 0.5, 0.5, 0.5}, .common = 10};
constexpr double kLeastCalibration = 1e-3;
constexpr double kMostCalibration = 1e3;

PlanWork work_for(const Cluster& cluster, const MeasuredStep& step) {
  static const Software kTrireme;
  return {step.model, cluster, kTrireme, step.precision};
}

double within_limits(double factor) {
  return std::clamp(factor, kLeastCalibration, kMostCalibration);
}

// Returns the terms of computing by the factor that scales them: products, head, attention and
// kernels, with what recomputation repeats of each.
std::vector<double> compute_terms(const Cluster& cluster, const MeasuredStep& step) {
  const StepParts p = step_parts(work_for(cluster, step), step.layout, BubbleMethod::simulated, {});
  const double passes = real(step.layout.micro_batches) * p.layers;
  const PassCost& repeated = p.block.repeated;
  return {p.time.products + passes * repeated.products, p.time.head,
          p.time.attention + passes * repeated.attention,
          p.time.kernels + passes * repeated.kernels + p.time.accumulate};
}

void fit_compute(const std::vector<MeasuredStep>& steps, Cluster& cluster) {
  std::vector<std::vector<double>> rows;
  for (const MeasuredStep& step : steps) {
    if (step.measured.compute > 0) {
      rows.push_back(compute_terms(cluster, step));
      for (double& term : rows.back()) {
        term /= step.measured.compute;
      }
    }
  }
  const std::vector<double> f = fit_to_ones(rows, kAlike);
  Cluster::Calibration& c = cluster.calibration;
  c.products = within_limits(f[0]);
  c.head = within_limits(f[1]);
  c.attention = within_limits(f[2]);
  c.kernels = within_limits(f[3]);
}

// Fits the factor of a part that it alone scales: least squares of the errors by the steps' times.
// Returns to how many steps.
int fit_part(const std::vector<MeasuredStep>& steps, double StepSplit::*part, Cluster& cluster,
             double& factor) {
  double both = 0;
  double square = 0;
  int used = 0;
  for (const MeasuredStep& step : steps) {
    const double whole = step.measured.predictable();
    const double predicted = split_of(predicted_step(cluster, step)).*part / whole;
    if (predicted > 0) {
      both += predicted * (step.measured.*part / whole);
      square += predicted * predicted;
      ++used;
    }
  }
  factor = used > 0 ? within_limits(factor * both / square) : 1;
  return used;
}

Cluster fitted(Cluster cluster, const std::vector<MeasuredStep>& steps,
               std::map<std::string, int>* used) {
  cluster.calibration = {};
  Cluster::Calibration& c = cluster.calibration;
  fit_compute(steps, cluster);
  std::map<std::string, int> counts;
  // What a stage needs decides how long others wait for it, so the pipeline comes after these.
  counts["calibration.tensor"] = fit_part(steps, &StepSplit::tensor, cluster, c.tensor);
  counts["calibration.pipeline"] = fit_part(steps, &StepSplit::pipeline, cluster, c.pipeline);
  counts["calibration.replicas"] = fit_part(steps, &StepSplit::replicas, cluster, c.replicas);
  counts["calibration.optimizer"] = fit_part(steps, &StepSplit::update, cluster, c.optimizer);
  if (used != nullptr) {
    for (const char* key : {"products", "head", "attention", "kernels"}) {
      counts[std::string("calibration.") + key] = static_cast<int>(steps.size());
    }
    std::erase_if(counts, [](const auto& count) { return count.second == 0; });
    *used = std::move(counts);
  }
  return cluster;
}

double error_of(const Cluster& cluster, const MeasuredStep& step) {
  return split_of(predicted_step(cluster, step)).predictable() / step.measured.predictable() - 1;
}

}  // namespace

StepTime predicted_step(const Cluster& cluster, const MeasuredStep& step) {
  return step_time(work_for(cluster, step), step.layout, BubbleMethod::simulated);
}

CalibrationFit fit_calibration(const Cluster& cluster, const std::vector<MeasuredStep>& steps) {
  check(!steps.empty(), "a calibration has steps to fit to");
  CalibrationFit fit;
  fit.cluster = fitted(cluster, steps, &fit.fitted_to);
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const MeasuredStep& step = steps[i];
    CalibrationRow row{step.name, step.measured, split_of(predicted_step(fit.cluster, step)),
                       error_of(fit.cluster, step), 0};
    std::vector<MeasuredStep> others = steps;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    row.error_left_out =
        others.empty() ? row.error : error_of(fitted(cluster, others, nullptr), step);
    sum += std::abs(row.error_left_out);
    fit.rows.push_back(std::move(row));
  }
  fit.cluster.residual_percent = 100 * sum / static_cast<double>(steps.size());
  return fit;
}

}  // namespace trireme
