// Reads the runs of a scaling study and says how well it scales, and why not better.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/app/study/scale_study.h"
#include "src/study/scaling.h"

namespace trireme {

// Where the time of a step goes, in milliseconds, as the mean over ranks and repetitions. The parts
// add up to `step`.
struct StepLosses {
  double step = 0;
  double compute = 0;
  double communication = 0;  // exposed, without the waiting for slower ranks
  double imbalance = 0;      // computing time of the slowest rank minus that of the mean one
  double bubble = 0;
  double input = 0;
  double optimizer = 0;
  double checkpoint = 0;
  double other = 0;
};

struct ScaleReport {
  std::vector<ScalePoint> points;  // sorted by nodes; those with at least one finished run
  std::vector<Scaling> scaling;
  std::vector<StepLosses> losses;
  std::size_t knee = 0;              // index
  std::optional<Scaling> uncertain;  // a point that might move the knee
};

// Throws ConfigError if the runs were not made under the same conditions, with what differs, and
// NotFound if no run on the smallest number of nodes is done. Throws what read_scale_run() throws.
ScaleReport make_scale_report(const ScaleStudy& study);

void print_scale_report(const ScaleReport& report, const ScaleStudy& study);
// Returns the results of the document that benchmarks/schema describes.
nlohmann::ordered_json scale_results(const ScaleReport& report, const ScaleStudy& study);

}  // namespace trireme
