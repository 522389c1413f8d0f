#include "src/base/regular_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr mode_t kMode = 0644;

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFDIR:
      return "a directory";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "a special file";
  }
}

[[noreturn]] void refuse(const std::filesystem::path& path, mode_t mode, int flags) {
  const std::string what =
      fmt::format("{} is {}, not a regular file", path.string(), kind_of(mode));
  if ((flags & O_ACCMODE) == O_RDONLY) {
    throw DataError(what + ": choose another path");
  }
  const bool is_device = S_ISCHR(mode) || S_ISBLK(mode);  // such as /dev/null, which stays
  throw PolicyError(what +
                    (is_device ? ": choose another path" : ": remove it, or choose another path"));
}

}  // namespace

int open_regular(const std::filesystem::path& path, int flags) {
  // With O_NONBLOCK, opening a FIFO returns or fails at once instead of waiting for its other end.
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
  const int error = errno;
  if (fd < 0 && error == ELOOP && (flags & O_NOFOLLOW) != 0) {
    throw PolicyError(
        fmt::format("{} is a symbolic link, which could lead elsewhere: remove it", path.string()));
  }
  struct stat status {};
  if ((fd >= 0 ? ::fstat(fd, &status) : ::stat(path.c_str(), &status)) != 0) {
    if (fd >= 0) {
      ::close(fd);
    }
    errno = fd >= 0 ? EIO : error;
    return -1;
  }
  if (fd < 0 && error == EWOULDBLOCK && S_ISREG(status.st_mode)) {
    // Another process holds a lease (fcntl(2), F_SETLEASE); this waits until the kernel has broken
    // it.
    return ::open(path.c_str(), flags | O_CLOEXEC, kMode);
  }
  if (fd < 0 && error != ENXIO && error != EISDIR) {
    errno = error;
    return -1;
  }
  if (!S_ISREG(status.st_mode)) {
    if (fd >= 0) {
      ::close(fd);
    }
    refuse(path, status.st_mode, flags);
  }
  if (fd >= 0) {
    (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  }
  errno = error;
  return fd;
}

std::string read_to_end(int fd, std::int64_t most_bytes, const std::filesystem::path& path) {
  std::string text(static_cast<std::size_t>(most_bytes), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw_errno(errno, "read", path);
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace trireme
