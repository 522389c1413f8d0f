// Names the file in which a run keeps its latest metrics for node_exporter.
#pragma once

#include <filesystem>

#include "src/train/run/run_config.h"

namespace trireme {

// Returns the file for metrics.openmetrics: the path itself if it ends in .prom, or a file in that
// folder whose name follows from the run's name and folder.
std::filesystem::path openmetrics_path(const RunConfig& config);

}  // namespace trireme
