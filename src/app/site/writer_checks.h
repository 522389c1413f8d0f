// Looks for `trireme doctor` at files that decide what commands record, which keys they use and
// whose code they run: whether a whole group can change them. What everybody can change, a start
// refuses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// site_folders: whose *.yaml and revoked-keys are looked at. host: where it was checked.
std::vector<Finding> check_writers(const RunConfig& config,
                                   const std::vector<std::filesystem::path>& site_folders,
                                   const std::string& host);

}  // namespace trireme
