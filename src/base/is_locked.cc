#include "src/base/is_locked.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "src/base/file.h"

namespace trireme {

bool is_locked(const std::filesystem::path& path) {
  const UniqueHandle<FileDescriptorTraits> file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace trireme
