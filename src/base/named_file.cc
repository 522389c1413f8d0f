#include "src/base/named_file.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

void check_named_file(const fs::path& path, std::string_view option) {
  const std::string given = option.empty() ? "" : fmt::format("{} ", option);
  const auto refuse = [&](int code) {
    throw_errno(code, option.empty() ? "write" : "write " + std::string(option), path);
  };
  if (path == "-") {
    throw ConfigError(fmt::format(
        "{}'-' does not mean standard output here: name a file ('./-' if it is to be called so)",
        given));
  }
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw PolicyError(fmt::format(
        "{}{} is a device, a FIFO or a folder; name a regular file instead", given, path.string()));
  }
  // While it is written, it has a longer name.
  const fs::path temporary = path.string() + fmt::format(".tmp-{}", ::getpid());
  struct stat entry {};
  if (::lstat(temporary.c_str(), &entry) != 0 && errno == ENAMETOOLONG) {
    refuse(ENAMETOOLONG);
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, none)) {
    refuse(fs::exists(parent, none) ? ENOTDIR : ENOENT);
  }
  // A temporary file beside it is renamed.
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    refuse(errno);
  }
}

}  // namespace trireme
