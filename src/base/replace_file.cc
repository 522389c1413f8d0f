#include "src/base/replace_file.h"

#include <cerrno>

#include <fmt/format.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr ::mode_t kForEverybody = 0644;

// Removes the temporary file unless it was renamed.
struct TemporaryFile {
  std::filesystem::path path;
  ~TemporaryFile() {
    std::error_code code;
    std::filesystem::remove(path, code);
  }
};

}  // namespace

void replace_text_file(const std::filesystem::path& path, std::string_view contents) {
  std::error_code code;
  const auto status = std::filesystem::symlink_status(path, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw PolicyError(fmt::format("cannot replace {}: it is not a regular file", path.string()));
  }
  const TemporaryFile temporary{path.parent_path() / ("." + path.filename().string() + ".tmp")};
  std::filesystem::remove(temporary.path, code);  // left over from a process that was killed
  File file = File::create_new(temporary.path);
  if (::fchmod(file.fd(), kForEverybody) != 0) {  // whatever the umask
    throw_errno(errno, "change the mode of", temporary.path);
  }
  file.write(contents.data(), static_cast<std::int64_t>(contents.size()));
  file.close();
  if (::rename(temporary.path.c_str(), path.c_str()) != 0) {
    throw_errno(errno, "replace", path);
  }
}

}  // namespace trireme
