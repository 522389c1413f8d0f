// A calibration has to find the factors of a machine from the steps that it measures there, and to
// say how wrong its predictions are.
#include "src/plan/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/plan/factor_fit.h"

namespace trireme {
namespace {

PlanModel model_of(std::int64_t layers, std::int64_t sequence, bool gated) {
  return {.layers = layers,
          .hidden = 1024,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 64,
          .ffn = 4096,
          .vocab = 32000,
          .sequence = sequence,
          .gated = gated};
}

// Steps of both families, with and without replicas, tensor parallelism and a pipeline.
std::vector<MeasuredStep> some_steps() {
  std::vector<MeasuredStep> steps;
  const auto add = [&](const PlanModel& model, std::int64_t dp, std::int64_t tp, std::int64_t pp,
                       int zero = 0) {
    MeasuredStep step;
    step.model = model;
    step.layout.dp = dp;
    step.layout.tp = tp;
    step.layout.pp = pp;
    step.layout.zero = zero;
    step.layout.micro_batches = 8 / dp;
    step.steps = 10;
    steps.push_back(step);
  };
  for (const bool gated : {false, true}) {
    add(model_of(12, 1024, gated), 4, 1, 1);
    add(model_of(6, 1024, gated), 4, 1, 1);
    add(model_of(12, 256, gated), 4, 1, 1);
    add(model_of(12, 2048, gated), 4, 1, 1, 1);
    add(model_of(12, 1024, gated), 1, 4, 1);
    add(model_of(12, 1024, gated), 1, 1, 4);
  }
  return steps;
}

// Sets what the steps would measure on a machine.
void run_on(const Cluster& machine, std::vector<MeasuredStep>& steps) {
  for (MeasuredStep& step : steps) {
    step.measured = split_of(predicted_step(machine, step));
  }
}

TEST(Calibration, FindsTheFactorsOfAMachine) {
  Cluster machine = load_cluster("test");
  machine.calibration = {.products = 1.3,
                         .head = 0.8,
                         .attention = 1.8,
                         .kernels = 1.5,
                         .tensor = 1.4,
                         .pipeline = 1.2,
                         .replicas = 0.6,
                         .optimizer = 3};
  std::vector<MeasuredStep> steps = some_steps();
  run_on(machine, steps);
  const CalibrationFit fit = fit_calibration(load_cluster("test"), steps);
  EXPECT_LT(fit.cluster.residual_percent, 2);
  EXPECT_NEAR(fit.cluster.calibration.tensor, 1.4, 0.05);
  EXPECT_NEAR(fit.cluster.calibration.replicas, 0.6, 0.05);
  EXPECT_NEAR(fit.cluster.calibration.optimizer, 3, 1e-6);
  EXPECT_NEAR(fit.cluster.calibration.products, 1.3, 0.1);
  EXPECT_EQ(fit.fitted_to.at("calibration.tensor"), 2);
  EXPECT_EQ(fit.fitted_to.at("calibration.products"), 12);
  for (const CalibrationRow& row : fit.rows) {
    EXPECT_LT(std::abs(row.error), 0.02) << row.name;
  }
}

TEST(Calibration, DoesNotDependOnTheFactorsBefore) {
  std::vector<MeasuredStep> steps = some_steps();
  Cluster machine = load_cluster("test");
  machine.calibration.attention = 2;
  run_on(machine, steps);
  const Cluster once = fit_calibration(load_cluster("test"), steps).cluster;
  const Cluster again = fit_calibration(once, steps).cluster;
  EXPECT_EQ(again.calibration.attention, once.calibration.attention);
  EXPECT_EQ(again.residual_percent, once.residual_percent);
}

TEST(Calibration, PartsThatNoStepHasKeepTheirFactors) {
  std::vector<MeasuredStep> steps = some_steps();
  std::erase_if(steps, [](const MeasuredStep& s) { return s.layout.dp < 4; });
  run_on(load_cluster("test"), steps);
  const CalibrationFit fit = fit_calibration(load_cluster("test"), steps);
  EXPECT_EQ(fit.cluster.calibration.tensor, 1);
  EXPECT_EQ(fit.fitted_to.count("calibration.tensor"), 0U);
  EXPECT_EQ(fit.fitted_to.count("calibration.pipeline"), 0U);
  EXPECT_EQ(fit.fitted_to.at("calibration.replicas"), 8);
}

TEST(Calibration, WaitsForDataAndSavesDoNotCount) {
  std::vector<MeasuredStep> steps = some_steps();
  run_on(load_cluster("test"), steps);
  const CalibrationFit without = fit_calibration(load_cluster("test"), steps);
  for (MeasuredStep& step : steps) {
    step.measured.data = 5;
    step.measured.checkpoint = 5;
  }
  const CalibrationFit with = fit_calibration(load_cluster("test"), steps);
  EXPECT_DOUBLE_EQ(with.cluster.calibration.products, without.cluster.calibration.products);
  EXPECT_NEAR(with.cluster.residual_percent, without.cluster.residual_percent, 1e-9);
}

TEST(Calibration, TheResidualIsThatOfStepsThatWereLeftOut) {
  std::vector<MeasuredStep> steps = some_steps();
  run_on(load_cluster("test"), steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto parts = steps[i].measured.parts();
    for (double& part : parts) {
      part *= i % 2 == 0 ? 1.1 : 0.9;
    }
    steps[i].measured = StepSplit::of(parts);
  }
  const CalibrationFit fit = fit_calibration(load_cluster("test"), steps);
  EXPECT_GT(fit.cluster.residual_percent, 5);
  EXPECT_LT(fit.cluster.residual_percent, 25);
  double in_sample = 0;
  for (const CalibrationRow& row : fit.rows) {
    in_sample += 100 * std::abs(row.error) / static_cast<double>(fit.rows.size());
  }
  EXPECT_GT(fit.cluster.residual_percent, in_sample);
}

TEST(Calibration, OneStepIsEnough) {
  std::vector<MeasuredStep> steps = {some_steps().front()};
  Cluster machine = load_cluster("test");
  machine.calibration.products = machine.calibration.kernels = machine.calibration.attention =
      machine.calibration.head = 2;
  run_on(machine, steps);
  const CalibrationFit fit = fit_calibration(load_cluster("test"), steps);
  EXPECT_LT(fit.cluster.residual_percent, 1);
  EXPECT_NEAR(fit.cluster.calibration.products, 2, 0.05);
}

TEST(FactorFit, RowsThatDetermineTheFactorsAreMet) {
  // Terms x with 2 x0 + 3 x1 = 1.
  const std::vector<std::vector<double>> rows = {{0.2, 0.2}, {0.35, 0.1}, {0.05, 0.3}};
  const std::vector<double> factors = fit_to_ones(rows, {.own = {1e3, 1e3}, .common = 1e3});
  EXPECT_NEAR(factors[0], 2, 1e-5);
  EXPECT_NEAR(factors[1], 3, 1e-5);
}

TEST(FactorFit, WithoutRowsAllFactorsAreOne) {
  for (const double factor : fit_to_ones({}, {.own = {1, 2, 3}, .common = 1})) {
    EXPECT_NEAR(factor, 1, 1e-9);
  }
}

TEST(FactorFit, AnErrorIsLaidToWhatIsLeastCertain) {
  const std::vector<std::vector<double>> rows(4, {0.4, 0.4});
  const std::vector<double> factors = fit_to_ones(rows, {.own = {0.05, 3}, .common = 0.05});
  EXPECT_NEAR(factors[0], 1, 0.02);
  EXPECT_NEAR(factors[1], 1.5, 0.05);
  const std::vector<double> swapped = fit_to_ones(rows, {.own = {3, 0.05}, .common = 0.05});
  EXPECT_NEAR(swapped[0], factors[1], 1e-9);
}

TEST(FactorFit, FactorsThatAreOnlyUncertainTogetherStayEqual) {
  const std::vector<std::vector<double>> rows = {{0.7, 0.1}, {0.1, 0.7}};
  const std::vector<double> factors = fit_to_ones(rows, {.own = {1e-3, 1e-3}, .common = 1});
  EXPECT_NEAR(factors[0], 1.25, 0.01);
  EXPECT_NEAR(factors[1], factors[0], 1e-3);
}

// Factors of 1.02 and -0.1 would meet all rows. With 0 for the second, the best first is 0.995, not
// the 1.02 that was to make up for -0.1.
TEST(FactorFit, FactorsBesideOneOf0AreTheBestBesideIt) {
  std::vector<std::vector<double>> rows;
  for (const double term : {0.1, 0.2, 0.3, 0.4}) {
    rows.push_back({(1 + 0.1 * term) / 1.02, term});
  }
  const std::vector<double> factors = fit_to_ones(rows, {.own = {1e4, 1e4}, .common = 1e4});
  EXPECT_EQ(factors[1], 0);
  EXPECT_NEAR(factors[0], 0.995, 1e-3);
}

TEST(FactorFit, OneWrongRowCountsLess) {
  std::vector<std::vector<double>> rows(9, {0.5, 0.5});
  rows.push_back({5, 5});
  const std::vector<double> factors = fit_to_ones(rows, {.own = {1, 1}, .common = 10});
  EXPECT_GT(factors[0] + factors[1], 1.4) << "least squares alone give 0.35";
}

}  // namespace
}  // namespace trireme
