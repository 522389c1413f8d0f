// Reads measured runs of others from a CSV file, such as benchmarks/plan/published_runs.csv, and
// says with which software and on which cluster each was measured. Plain values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/plan/plan_layout.h"
#include "src/plan/plan_model.h"

namespace trireme {

struct PublishedRun {
  int line = 0;  // in the file
  std::string source;
  std::string model_name;
  std::string gpu_type;
  PlanModel model;
  PlanLayout layout;
  PlanPrecision precision = PlanPrecision::bf16;
  std::int64_t gpus = 0;
  double seconds = 0;     // measured, per step
  double memory_gib = 0;  // measured; 0 if not published
  std::string why_not;    // why a configuration cannot express it, or ""
};

// Throws DataError, with the line, if the text is not a table of runs: a header with the known
// columns, and at least one run with as many fields. An empty field says that a figure was not
// published. A figure or name that no run can have is refused, and so are gpus that are not
// dp x tp x pp x cp.
std::vector<PublishedRun> parse_published_runs(std::string_view csv, const std::string& origin);

// RunSetting is what published runs do not say in columns.
struct RunSetting {
  std::string cluster;  // name of a file of configs/cluster/
  Software software;
};
// Returns the setting of a run's source; a source that is not known counts as this program on the
// cluster that fits its GPU type. The cluster is "" if there is none for that type.
RunSetting setting_of(const PublishedRun& run);

}  // namespace trireme
