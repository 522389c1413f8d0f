#include "benchmarks/io/io_descriptor.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {

void IoDescriptor::open(const IoOpening& how) {
  path_ = how.path;
  writes_ = how.writes;
  direct_ = how.direct;
  const int flags =
      O_CLOEXEC | O_NOFOLLOW | (writes_ ? O_WRONLY | O_CREAT : O_RDONLY) | (direct_ ? O_DIRECT : 0);
  int fd = -1;
  do {
    fd = ::open(path_.c_str(), flags, 0600);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 && errno == EINVAL && direct_) {
    throw ConfigError(fmt::format("{}: this file system does not support direct I/O",
                                  std::filesystem::path(path_).parent_path().string()));
  }
  if (fd < 0) {
    throw_errno(errno, "open", path_);
  }
  handle_ = UniqueHandle<FileDescriptorTraits>(fd);
}

void IoDescriptor::advance(IoTransfer& transfer, std::int64_t result) const {
  if (result == -EINTR || result == -EAGAIN) {
    return;
  }
  if (result == -EINVAL && direct_) {
    throw ConfigError(fmt::format(
        "{}: this file system refuses direct I/O in transfers of {} bytes", path_, transfer.bytes));
  }
  if (result < 0) {
    throw_errno(static_cast<int>(-result), writes_ ? "write" : "read", path_);
  }
  if (result == 0) {
    throw IoError(fmt::format("{}: the file ends at byte {}, {} bytes too early", path_,
                              transfer.offset, transfer.bytes));
  }
  transfer.offset += result;
  transfer.data += result;
  transfer.bytes -= result;
}

void IoDescriptor::sync() {
  if (::fsync(fd()) != 0) {
    throw_errno(errno, "sync", path_);
  }
}

void IoDescriptor::close() {
  if (handle_ && ::close(handle_.release()) != 0 && errno != EINTR) {
    throw_errno(errno, "close", path_);
  }
}

}  // namespace trireme
