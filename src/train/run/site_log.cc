#include "src/train/run/site_log.h"

#include <fmt/core.h>

#include "src/base/printable.h"

namespace trireme {

std::string fault_of_site_log(const ConfigBinder& binder, const AuditConfig& config,
                              const std::filesystem::path& site) {
  const bool is_of_site =
      !site.empty() && binder.origin_of("audit.log").starts_with((site / "").string());
  if (config.log.empty() || config.log.is_absolute() || !is_of_site) {
    return "";
  }
  return fmt::format(
      "'{}' is a relative path, and each folder in which somebody works would get a log of its "
      "own: write a path that begins with /",
      printable(config.log.string()));
}

}  // namespace trireme
