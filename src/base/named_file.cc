#include "src/base/named_file.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

void check_named_file(const fs::path& path) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw PolicyError(fmt::format("{} is a device, a FIFO or a folder; name a regular file instead",
                                  path.string()));
  }
  // While it is written, it has a longer name.
  const fs::path temporary = path.string() + fmt::format(".tmp-{}", ::getpid());
  struct stat entry {};
  if (::lstat(temporary.c_str(), &entry) != 0 && errno == ENAMETOOLONG) {
    throw_errno(ENAMETOOLONG, "write", path);
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, none)) {
    throw_errno(fs::exists(parent, none) ? ENOTDIR : ENOENT, "write", path);
  }
}

}  // namespace trireme
