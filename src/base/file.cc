#include "src/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Linux moves at most 2 GiB in one call.
constexpr std::int64_t kMaxTransferBytes = std::int64_t{1} << 30;

int open_file(const fs::path& path, int flags, std::string_view operation) {
  while (true) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd >= 0) {
      return fd;
    }
    if (errno != EINTR) {
      throw_errno(errno, operation, path);
    }
  }
}

std::string advice(int code) {
  switch (code) {
    case ENOSPC:
      return "the file system is full: free space or point the path elsewhere";
    case EDQUOT:
      return "the quota is used up: free space or ask for more";
    case EROFS:
      return "the file system is mounted read-only: choose a writable path";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise the limit (ulimit -n)";
    case EIO:
      return "the device reports an error: look at dmesg and the storage";
    case ESTALE:
      return "the mount went away under the file: remount and start again";
    default:
      return "";
  }
}

}  // namespace

void FileDescriptorTraits::close(int fd) { ::close(fd); }

void throw_errno(int code, std::string_view operation, const fs::path& path) {
  const std::string hint = advice(code);
  const std::string what =
      fmt::format("cannot {} {}: {}{}{}", operation, path.string(),
                  std::generic_category().message(code), hint.empty() ? "" : "; ", hint);
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      throw NotFound(what);
    case EACCES:
    case EPERM:
      throw PolicyError(what);
    default:
      throw IoError(what);
  }
}

File File::open_to_read(const fs::path& path) {
  return File(open_file(path, O_RDONLY, "open"), path);
}

File File::create_new(const fs::path& path) {
  return File(open_file(path, O_RDWR | O_CREAT | O_EXCL, "create"), path);
}

File File::open_to_append(const fs::path& path) {
  return File(open_file(path, O_WRONLY | O_CREAT | O_APPEND, "open"), path);
}

File File::open_to_update(const fs::path& path) {
  return File(open_file(path, O_RDWR, "open"), path);
}

std::int64_t File::read_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t got = ::pread(fd(), static_cast<char*>(to) + done, wanted, offset + done);
    if (got < 0 && errno != EINTR) {
      throw_errno(errno, "read", path_);
    }
    if (got == 0) {
      break;
    }
    done += std::max<ssize_t>(got, 0);
  }
  return done;
}

void File::read_exactly_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  const std::int64_t got = read_at(offset, to, bytes);
  if (got != bytes) {
    throw DataError(
        fmt::format("{} ends at byte {}, {} bytes were expected at byte {}: the file is "
                    "truncated; restore it from a copy",
                    path_.string(), offset + got, bytes, offset));
  }
}

void File::write(const void* from, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t put = ::write(fd(), static_cast<const char*>(from) + done, wanted);
    if (put < 0 && errno != EINTR) {
      throw_errno(errno, "write", path_);
    }
    done += std::max<ssize_t>(put, 0);
  }
}

void File::write_at(std::int64_t offset, const void* from, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t put =
        ::pwrite(fd(), static_cast<const char*>(from) + done, wanted, offset + done);
    if (put < 0 && errno != EINTR) {
      throw_errno(errno, "write", path_);
    }
    done += std::max<ssize_t>(put, 0);
  }
}

void File::reserve(std::int64_t bytes) {
  // posix_fallocate would fall back to writing zeros; the bare call fails where it can't reserve.
  while (bytes > 0 && ::fallocate(fd(), 0, 0, bytes) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) {
      return;
    }
    if (errno != EINTR) {
      throw_errno(errno, "reserve space for", path_);
    }
  }
}

std::int64_t File::size() const {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) {
    throw_errno(errno, "stat", path_);
  }
  return status.st_size;
}

void File::sync() {
  if (::fsync(fd()) != 0) {
    throw_errno(errno, "sync", path_);
  }
}

void File::will_need(std::int64_t offset, std::int64_t bytes) const {
  (void)::posix_fadvise(fd(), offset, bytes, POSIX_FADV_WILLNEED);
}

void File::wont_need(std::int64_t offset, std::int64_t bytes) const {
  (void)::posix_fadvise(fd(), offset, bytes, POSIX_FADV_DONTNEED);
}

void File::close() {
  // After close() the descriptor is gone even when it reports an error: never call it twice.
  if (handle_ && ::close(handle_.release()) != 0 && errno != EINTR) {
    throw_errno(errno, "close", path_);
  }
}

std::string read_file(const fs::path& path, std::int64_t max_bytes) {
  const File file = File::open_to_read(path);
  const std::int64_t bytes = file.size();
  if (bytes > max_bytes) {
    throw DataError(fmt::format("{} has {} bytes, more than the {} that such a file may have",
                                path.string(), bytes, max_bytes));
  }
  std::string contents(static_cast<std::size_t>(bytes), '\0');
  contents.resize(static_cast<std::size_t>(file.read_at(0, contents.data(), bytes)));
  return contents;
}

void sync_directory(const fs::path& path) {
  File directory = File::open_to_read(path);
  directory.sync();
}

void write_file_durably(const fs::path& path, std::string_view contents) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path temporary = fmt::format("{}.tmp-{}", path.string(), ::getpid());
  ::unlink(temporary.c_str());
  try {
    File file = File::create_new(temporary);
    file.write(contents.data(), static_cast<std::int64_t>(contents.size()));
    file.sync();
    file.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_errno(errno, "rename to", path);
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent);
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    // Some network file systems know no flags; a directory never replaces a non-empty one there.
    if (errno != EINVAL && errno != ENOSYS) {
      throw_errno(errno, fmt::format("rename {} to", from.string()), to);
    }
    if (fs::exists(to)) {
      throw_errno(EEXIST, fmt::format("rename {} to", from.string()), to);
    }
    if (::rename(from.c_str(), to.c_str()) != 0) {
      throw_errno(errno, fmt::format("rename {} to", from.string()), to);
    }
  }
  sync_directory(to.has_parent_path() ? to.parent_path() : fs::path("."));
}

void make_directories(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) {
    throw_errno(code.value(), "create folder", path);
  }
}

std::int64_t free_bytes(const fs::path& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw_errno(errno, "query the file system of", path);
  }
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

}  // namespace trireme
