#include "io/checkpoint/folder_entries.h"

#include <system_error>

#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

std::vector<fs::path> folder_entries(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    paths.push_back(at->path());
  }
  if (code && code != std::errc::no_such_file_or_directory) {
    throw_errno(code.value(), "list", folder);
  }
  return paths;
}

}  // namespace trireme
