#include "src/train/run/config_files.h"

#include <system_error>

namespace trireme {

namespace fs = std::filesystem;

std::vector<fs::path> files_of_config(const ConfigSources& sources, const RunConfig& config) {
  std::vector<fs::path> files = {sources.file,     config.plan_cluster, config.comm_tuning,
                                 config.audit.log, config.audit.key,    config.metrics.openmetrics};
  for (const std::string& uri : config.encryption.keys) {
    files.emplace_back(uri.substr(uri.find(':') + 1));  // file:PATH, passphrase-file:PATH
  }
  std::error_code code;
  for (fs::directory_iterator at(sources.site, code), end; !code && at != end; at.increment(code)) {
    files.push_back(at->path());
  }
  std::erase_if(files, [](const fs::path& file) { return file.empty(); });
  return files;
}

}  // namespace trireme
