// Checks the audit log and the key of a site for `trireme doctor`: whether a start could record
// itself and sign. Nothing is written.
#pragma once

#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// The codes are those of a start. host: where it was checked.
std::vector<Finding> check_audit(const AuditConfig& config, const std::string& host);

}  // namespace trireme
