#include "src/app/access/overwrite.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"

namespace trireme {

void overwrite(const std::filesystem::path& path) {
  constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;
  const UniqueHandle<FileDescriptorTraits> file(
      ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file) {
    throw_errno(errno, "open", path);
  }
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
    return;
  }
  const std::string zeros(
      static_cast<std::size_t>(std::min<std::int64_t>(kBlockBytes, status.st_size)), '\0');
  for (std::int64_t at = 0; at < status.st_size;) {
    const auto some = static_cast<std::size_t>(std::min(kBlockBytes, status.st_size - at));
    const ssize_t put = ::pwrite(file.get(), zeros.data(), some, at);
    if (put <= 0 && errno != EINTR) {
      throw_errno(errno, "overwrite", path);
    }
    at += std::max<ssize_t>(put, 0);
  }
  if (::fsync(file.get()) != 0) {
    throw_errno(errno, "sync", path);
  }
}

}  // namespace trireme
