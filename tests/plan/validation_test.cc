// The accuracy that docs/planner.md promises, over the published runs that it lists.
#include "src/plan/validation.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/file.h"

namespace trireme {
namespace {

class Validation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto file =
        std::filesystem::path(TRIREME_SOURCE_DIR) / "benchmarks/plan/published_runs.csv";
    runs_ = new std::vector<PublishedRun>(parse_published_runs(read_file(file), file.string()));
    std::map<std::string, Cluster> clusters;
    predicted_ = new std::vector<PredictedRun>(predict(*runs_, clusters));
  }
  static void TearDownTestSuite() {
    delete predicted_;
    delete runs_;
  }
  static ErrorSummary errors_of(const std::string& source) {
    std::vector<double> errors;
    for (const PredictedRun& run : *predicted_) {
      if (source.empty() || run.run->source == source) {
        errors.push_back(run.error());
      }
    }
    return summarize(errors);
  }
  static inline std::vector<PublishedRun>* runs_ = nullptr;
  static inline std::vector<PredictedRun>* predicted_ = nullptr;
};

TEST_F(Validation, MostRunsCanBeExpressed) {
  EXPECT_EQ(runs_->size(), 297U);
  EXPECT_GE(predicted_->size(), 250U);
}

TEST_F(Validation, StepTimesOfSc21) {
  EXPECT_EQ(errors_of("sc21_t1").runs, 10);
  EXPECT_LE(errors_of("sc21_t1").mean_absolute, 0.1);
}

TEST_F(Validation, StepTimesOfAllRuns) {
  EXPECT_LE(errors_of("").median, 0.08);
  EXPECT_LE(errors_of("").p90, 0.20);
}

TEST_F(Validation, TheChosenLayoutIsNearlyTheBestMeasuredOne) {
  const std::vector<Regret> found = regrets(*predicted_, "vtrain_multi");
  ASSERT_GE(found.size(), 4U);
  for (const Regret& regret : found) {
    EXPECT_LE(regret.ratio, 1.05) << regret.grid;
    EXPECT_GE(regret.ratio, 1) << regret.grid;
  }
}

TEST_F(Validation, GroupsOfTermsAddUp) {
  for (const PredictedRun& run : *predicted_) {
    double sum = 0;
    for (const double group : grouped(run.time)) {
      sum += group;
    }
    EXPECT_NEAR(sum / run.time.total(), 1, 1e-9);
  }
}

TEST_F(Validation, AFitReducesTheErrorsOfItsOwnRuns) {
  std::vector<const PredictedRun*> members;
  double before = 0;
  for (const PredictedRun& run : *predicted_) {
    if (run.run->source == "bigscience_a100") {
      members.push_back(&run);
      before += run.error() * run.error();
    }
  }
  double after = 0;
  const TermGroups factors = fit_factors(members);
  for (const PredictedRun* run : members) {
    after += calibrated_error(*run, factors) * calibrated_error(*run, factors);
  }
  EXPECT_LT(after, before);
}

TEST_F(Validation, DrawsFollowTheSeed) {
  const auto mean = [](std::uint64_t seed) {
    return calibrate_on_part(*predicted_, "vtrain_multi", 0.1, 5, seed).mean_absolute;
  };
  EXPECT_EQ(mean(1), mean(1));
  EXPECT_NE(mean(1), mean(2));
}

TEST(Summary, KnowsMeanMedianAndTheNinthTenth) {
  const ErrorSummary summary = summarize({0.1, -0.2, 0.3, -0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0});
  EXPECT_EQ(summary.runs, 10);
  EXPECT_NEAR(summary.mean_absolute, 0.55, 1e-12);
  EXPECT_NEAR(summary.median, 0.55, 1e-12);
  EXPECT_NEAR(summary.p90, 0.9, 1e-12);
  EXPECT_NEAR(summary.bias, 0.43, 1e-12);
  EXPECT_EQ(summarize({}).runs, 0);
}

// A fit finds the factors that made the times.
TEST(Fit, FindsKnownFactors) {
  std::vector<PublishedRun> runs(2000);
  std::vector<PredictedRun> predicted;
  std::vector<const PredictedRun*> members;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto x = static_cast<double>(i);
    StepTime time;
    time.products = 3 + std::fmod(x * 7, 5);
    time.attention = 3 + std::fmod(x * 11, 4);
    time.tensor = 3 + std::fmod(x * 13, 6);
    runs[i].seconds = 1.2 * time.products + 0.8 * time.attention + 2 * time.tensor;
    predicted.push_back({&runs[i], time});
  }
  for (const PredictedRun& run : predicted) {
    members.push_back(&run);
  }
  const TermGroups factors = fit_factors(members);
  EXPECT_NEAR(factors[0], 1.2, 0.1);
  EXPECT_NEAR(factors[1], 0.8, 0.1);
  EXPECT_GT(factors[2], 0.8);  // no run has such terms: near the mean of the others
  EXPECT_LT(factors[2], 2);
  EXPECT_NEAR(factors[3], 2, 0.1);
}

}  // namespace
}  // namespace trireme
