// Asks the policy of this host, for `trireme doctor`, whether it allows what the run would do.
#pragma once

#include <vector>

#include "slurm/doctor/finding.h"
#include "src/policy/access.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Records nothing. Datasets that cannot be read are left to check_training_data().
std::vector<Finding> check_policy(const AccessSource& access, const RunConfig& config,
                                  const std::string& host);

}  // namespace trireme
