// Compares predicted with published step times: per source, per group of terms, after calibration
// on a part of the runs, and with one source left out. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/plan/published_runs.h"
#include "src/plan/step_time.h"

namespace trireme {

// Terms that one factor of a calibration scales.
inline constexpr int kTermGroups = 6;
const std::array<const char*, kTermGroups>& term_group_names();
using TermGroups = std::array<double, kTermGroups>;
// Returns the seconds of each group; they add up to the step.
TermGroups grouped(const StepTime& time);

struct PredictedRun {
  const PublishedRun* run = nullptr;
  StepTime time;
  // Relative error of the predicted step time: -0.1 if it is 10 % too short.
  double error() const { return time.total() / run->seconds - 1; }
};

// Returns the predictions of the runs that a configuration can express. clusters: by name; missing
// ones are loaded into it.
std::vector<PredictedRun> predict(const std::vector<PublishedRun>& runs,
                                  std::map<std::string, Cluster>& clusters);

struct ErrorSummary {
  std::int64_t runs = 0;
  double mean_absolute = 0;
  double median = 0;  // of the absolute errors
  double p90 = 0;
  double bias = 0;  // mean error with its sign
};
ErrorSummary summarize(std::vector<double> errors);

// Returns the factor of each group of terms that fits the runs best: least squares of the relative
// errors, where outliers count less, with penalties that keep the factors near their mean and that
// near 1, so that a few runs suffice.
TermGroups fit_factors(const std::vector<const PredictedRun*>& runs);
double calibrated_error(const PredictedRun& run, const TermGroups& factors);

// Returns the errors of the runs of `source` after a fit to a random part of them, over `draws`
// draws; only runs that were not drawn count. A pure function of the seed.
ErrorSummary calibrate_on_part(const std::vector<PredictedRun>& runs, const std::string& source,
                               double part, int draws, std::uint64_t seed);
// Returns the errors of the runs of `source` after a fit to all other sources.
ErrorSummary leave_out(const std::vector<PredictedRun>& runs, const std::string& source);

// Returns, for each set of runs that train the same model with the same global batch on as many
// GPUs, the measured time of the run that is predicted to be fastest by that of the fastest one.
struct Regret {
  std::string grid;  // "GPT 39.1B on 512 GPUs"
  std::int64_t layouts = 0;
  double ratio = 1;
};
std::vector<Regret> regrets(const std::vector<PredictedRun>& runs, const std::string& source);

}  // namespace trireme
