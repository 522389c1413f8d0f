// Checks the place of the audit log that a site names.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/config_binder.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Returns what is wrong with audit.log if the site's files have set it, or "". They must name it by
// an absolute path.
std::string fault_of_site_log(const ConfigBinder& binder, const AuditConfig& config,
                              const std::filesystem::path& site);

}  // namespace trireme
