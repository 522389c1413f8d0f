#include "src/app/site/writer_checks.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "src/base/error.h"
#include "src/base/file_writers.h"
#include "src/base/printable.h"
#include "src/keys/pkcs11_uri.h"
#include "src/keys/revoked_keys.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Returns the modules of tokens among the keys, as far as they are named by paths.
std::set<fs::path> modules_of(std::vector<std::string> keys) {
  std::set<fs::path> modules;
  for (const std::string& key : keys) {
    try {
      if (key.starts_with(kPkcs11Kind)) {
        modules.insert(parse_pkcs11_uri(key).module_path);
      }
    } catch (const ConfigError&) {
      // Another check reports it.
    }
  }
  std::erase_if(modules, [](const fs::path& path) { return !path.has_parent_path(); });
  return modules;
}

std::set<fs::path> site_files(const std::vector<fs::path>& folders) {
  std::set<fs::path> files;
  for (const fs::path& folder : folders) {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder, absent)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".yaml" || path.filename() == kRevokedKeysName) {
        files.insert(path);
      }
    }
  }
  return files;
}

}  // namespace

std::vector<Finding> check_writers(const RunConfig& config,
                                   const std::vector<fs::path>& site_folders,
                                   const std::string& host) {
  std::vector<Finding> found;
  const auto warn = [&](const std::set<fs::path>& files, const char* harm) {
    for (const fs::path& file : files) {
      if (writers_of(file) == FileWriters::group) {
        found.push_back(warning_of(
            fmt::format("{} can be changed by every member of its group, who could {}",
                        printable(file.string()), harm),
            host, "take the right from the group with chmod g-w, unless all its members may"));
      }
    }
  };
  warn(site_files(site_folders), "change what commands record, encrypt and run");
  std::vector<std::string> keys = config.encryption.keys;
  keys.push_back(config.audit.key.string());
  warn(modules_of(std::move(keys)), "run code where keys are used");
  return found;
}

}  // namespace trireme
