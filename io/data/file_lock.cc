#include "io/data/file_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/regular_file.h"

namespace trireme {
namespace {

int open_lock(const std::filesystem::path& path) {
  const int fd = open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (fd < 0) {
    throw_errno(errno, "create", path);
  }
  return fd;
}

// Returns 0 or errno, which is EWOULDBLOCK if another process holds the lock.
int lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

FileLock FileLock::wait_for(const std::filesystem::path& path) {
  FileLock held(open_lock(path));
  (void)lock(held.handle_.get(), LOCK_EX);
  return held;
}

std::optional<FileLock> FileLock::try_take(const std::filesystem::path& path) {
  FileLock held(open_lock(path));
  if (lock(held.handle_.get(), LOCK_EX | LOCK_NB) == EWOULDBLOCK) {
    return std::nullopt;
  }
  return held;
}

void FileLock::write(std::string_view text) const {
  if (::ftruncate(handle_.get(), 0) == 0) {
    (void)!::pwrite(handle_.get(), text.data(), text.size(), 0);
  }
}

}  // namespace trireme
