#include "src/train/run/openmetrics_path.h"

#include <fmt/format.h>

#include "src/base/digest.h"

namespace trireme {

std::filesystem::path openmetrics_path(const RunConfig& config) {
  const std::filesystem::path& given = config.metrics.openmetrics;
  if (given.extension() == ".prom") {
    return given;
  }
  const std::filesystem::path run = std::filesystem::absolute(config.run_dir).lexically_normal();
  std::string name = config.run_name.empty() ? run.filename().string() : config.run_name;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    c = plain || c == '-' || c == '_' ? c : '_';
  }
  constexpr std::size_t kMostName = 64;
  // Runs of the same name in different folders must not share a file.
  return given / fmt::format("trireme-{}-{:08x}.prom", name.substr(0, kMostName),
                             static_cast<std::uint32_t>(xxh3(
                                 run.c_str(), static_cast<std::int64_t>(run.native().size()))));
}

}  // namespace trireme
