// Lists the files that a run's configuration consists of or names, so that no command that reads
// them replaces one by its result.
#pragma once

#include <filesystem>
#include <vector>

#include "src/train/run/run_config.h"

namespace trireme {

// Returns the YAML files among the sources, and the files that the keys of the configuration name:
// for the cluster, for transports, for metrics, for the audit log, and of keys. Some may be absent.
// Datasets, checkpoints and the run's own folder are not among them.
std::vector<std::filesystem::path> files_of_config(const ConfigSources& sources,
                                                   const RunConfig& config);

}  // namespace trireme
