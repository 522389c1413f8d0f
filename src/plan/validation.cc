#include "src/plan/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "src/base/philox.h"
#include "src/plan/factor_fit.h"

namespace trireme {
namespace {

// What is known of a cluster before its runs are: how fast its products are, within a few percent,
// and little about its links. In the order of term_group_names().
const FactorPrior kPrior{.own = {0.05, 0.5, 0.5, 3, 0.5, 3}, .common = 0.05, .noise = 0.05};

// Returns the terms of a run by the measured time: the factors are to make their sum 1.
std::vector<double> shares_of(const PredictedRun& run) {
  const TermGroups terms = grouped(run.time);
  std::vector<double> shares(terms.begin(), terms.end());
  for (double& each : shares) {
    each /= run.run->seconds;
  }
  return shares;
}

std::vector<const PredictedRun*> of_source(const std::vector<PredictedRun>& runs,
                                           const std::string& source, bool is) {
  std::vector<const PredictedRun*> found;
  for (const PredictedRun& run : runs) {
    if ((run.run->source == source) == is) {
      found.push_back(&run);
    }
  }
  return found;
}

}  // namespace

const std::array<const char*, kTermGroups>& term_group_names() {
  static constexpr std::array<const char*, kTermGroups> kNames = {
      "products", "attention", "kernels", "tensor", "pipeline", "replicas"};
  return kNames;
}

TermGroups grouped(const StepTime& t) {
  return {t.products + t.head + t.recompute,
          t.attention,
          t.kernels + t.accumulate + t.optimizer,
          t.tensor,
          t.transfer + t.bubble,
          t.gradients + t.parameters + t.checkpoint};
}

std::vector<PredictedRun> predict(const std::vector<PublishedRun>& runs,
                                  std::map<std::string, Cluster>& clusters) {
  std::vector<PredictedRun> predicted;
  for (const PublishedRun& run : runs) {
    if (!run.why_not.empty()) {
      continue;
    }
    const RunSetting setting = setting_of(run);
    if (!clusters.contains(setting.cluster)) {
      clusters[setting.cluster] = load_cluster(setting.cluster);
    }
    const PlanWork work{run.model, clusters[setting.cluster], setting.software, run.precision};
    predicted.push_back({&run, step_time(work, run.layout, BubbleMethod::simulated)});
  }
  return predicted;
}

ErrorSummary summarize(std::vector<double> errors) {
  ErrorSummary summary;
  if (errors.empty()) {
    return summary;
  }
  const auto count = static_cast<double>(errors.size());
  summary.runs = static_cast<std::int64_t>(errors.size());
  summary.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  for (double& error : errors) {
    error = std::abs(error);
  }
  std::sort(errors.begin(), errors.end());
  summary.mean_absolute = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  const std::size_t half = errors.size() / 2;
  summary.median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  // the smallest error that at least nine tenths do not exceed
  summary.p90 = errors[static_cast<std::size_t>(std::ceil(0.9 * count)) - 1];
  return summary;
}

TermGroups fit_factors(const std::vector<const PredictedRun*>& runs) {
  std::vector<std::vector<double>> rows;
  for (const PredictedRun* run : runs) {
    rows.push_back(shares_of(*run));
  }
  const std::vector<double> fitted = fit_to_ones(rows, kPrior);
  TermGroups factors;
  std::copy(fitted.begin(), fitted.end(), factors.begin());
  return factors;
}

double calibrated_error(const PredictedRun& run, const TermGroups& factors) {
  const TermGroups x = grouped(run.time);
  return std::inner_product(x.begin(), x.end(), factors.begin(), 0.0) / run.run->seconds - 1;
}

ErrorSummary calibrate_on_part(const std::vector<PredictedRun>& runs, const std::string& source,
                               double part, int draws, std::uint64_t seed) {
  const std::vector<const PredictedRun*> all = of_source(runs, source, true);
  const auto drawn =
      static_cast<std::size_t>(std::max(1.0, std::round(part * static_cast<double>(all.size()))));
  std::vector<double> errors;
  for (int draw = 0; draw < draws && drawn < all.size(); ++draw) {
    std::vector<const PredictedRun*> order = all;
    for (std::size_t i = order.size() - 1; i > 0; --i) {  // Fisher and Yates
      const std::uint64_t random =
          mix64(seed ^ mix64(static_cast<std::uint64_t>(draw) * 1'000'003 + i));
      std::swap(order[i], order[random % (i + 1)]);
    }
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(drawn);
    const TermGroups factors = fit_factors({order.begin(), end});
    for (auto each = end; each != order.end(); ++each) {
      errors.push_back(calibrated_error(**each, factors));
    }
  }
  return summarize(std::move(errors));
}

ErrorSummary leave_out(const std::vector<PredictedRun>& runs, const std::string& source) {
  const TermGroups factors = fit_factors(of_source(runs, source, false));
  std::vector<double> errors;
  for (const PredictedRun* run : of_source(runs, source, true)) {
    errors.push_back(calibrated_error(*run, factors));
  }
  return summarize(std::move(errors));
}

std::vector<Regret> regrets(const std::vector<PredictedRun>& runs, const std::string& source) {
  std::map<std::string, std::vector<const PredictedRun*>> grids;
  for (const PredictedRun* run : of_source(runs, source, true)) {
    const PublishedRun& r = *run->run;
    grids[fmt::format("{} on {} GPUs, {} sequences", r.model_name, r.gpus, r.layout.global_batch())]
        .push_back(run);
  }
  std::vector<Regret> found;
  for (const auto& [grid, members] : grids) {
    if (members.size() < 2) {
      continue;
    }
    const auto predicted = [](const PredictedRun* a, const PredictedRun* b) {
      return a->time.total() < b->time.total();
    };
    const auto measured = [](const PredictedRun* a, const PredictedRun* b) {
      return a->run->seconds < b->run->seconds;
    };
    const PredictedRun* chosen = *std::min_element(members.begin(), members.end(), predicted);
    const PredictedRun* best = *std::min_element(members.begin(), members.end(), measured);
    found.push_back({grid, static_cast<std::int64_t>(members.size()),
                     chosen->run->seconds / best->run->seconds});
  }
  return found;
}

}  // namespace trireme
