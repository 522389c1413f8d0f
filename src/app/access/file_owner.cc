#include "src/app/access/file_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"

namespace trireme {

std::optional<FileOwner> owner_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return FileOwner{status.st_uid, status.st_gid, status.st_mode & 0777U};
}

void give_owner(const std::filesystem::path& path, const FileOwner& owner) noexcept {
  const UniqueHandle<FileDescriptorTraits> file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_nlink != 1 || status.st_uid != ::geteuid()) {
    return;
  }
  (void)::fchmod(file.get(), owner.mode);
  [[maybe_unused]] const int same_owner = ::fchown(file.get(), owner.user, owner.group);
}

}  // namespace trireme
