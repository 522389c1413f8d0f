#include "src/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/contained_file.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/floating_point.h"
#include "src/base/regular_file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Linux transfers at most 2 GiB in one call.
constexpr std::int64_t kMaxTransferBytes = std::int64_t{1} << 30;

// Passes the fault point before a system call, then makes the call as call(bytes).
template <class Call>
ssize_t pass(std::string_view site, std::size_t bytes, Call call) {
  const FaultyCall planned = fault_call(site, static_cast<std::int64_t>(bytes));
  if (planned.error != 0) {
    errno = planned.error;
    return -1;
  }
  return call(static_cast<std::size_t>(planned.bytes));
}

// Returns the suffix of the temporary file that write_file_durably() renames.
std::string temporary_suffix() { return fmt::format(".tmp-{}", ::getpid()); }

// Opens a regular file, or a folder if flags contain O_DIRECTORY.
int open_file(const fs::path& path, int flags, std::string_view operation) {
  while (true) {
    const ssize_t fd = pass("file.open", 0, [&](std::size_t) {
      return (flags & O_DIRECTORY) != 0 ? ::open(path.c_str(), flags | O_CLOEXEC)
                                        : open_regular(path, flags);
    });
    if (fd >= 0) {
      return static_cast<int>(fd);
    }
    if (errno != EINTR) {
      throw_errno(errno, operation, path);
    }
  }
}

void sync_descriptor(int fd, const fs::path& path) {
  while (pass("file.sync", 0, [&](std::size_t) { return ::fsync(fd); }) != 0) {
    // EINTR is not a failure. After a real one, a second fsync could report success for lost data.
    if (errno != EINTR) {
      throw_errno(errno, "sync", path);
    }
  }
}

// Returns the bytes that a write has moved. Throws if it moved none without an error, because the
// caller would repeat it endlessly.
std::int64_t moved(ssize_t put, const fs::path& path) {
  if (put < 0 && errno == EINTR) {
    return 0;
  }
  if (put <= 0) {
    throw_errno(put < 0 ? errno : EIO, "write", path);
  }
  return put;
}

std::string advice(int code) {
  switch (code) {
    case ENOSPC:
      return "the file system is full: free space or choose another path";
    case EDQUOT:
      return "the quota is used up: free space or ask for a larger quota";
    case EROFS:
      return "the file system is mounted read-only: choose a writable path";
    case EFBIG:
      return "the file would be larger than this process may write: raise the limit (ulimit -f)";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise the limit (ulimit -n)";
    case EIO:
      return "the device reports an error: look at dmesg and the storage";
    case ESTALE:
      return "the file system was unmounted or its server has lost the file: mount it again and "
             "restart";
    case ENAMETOOLONG:
      return "a name has at most 255 bytes, and a path 4095; while a file is written, its name is "
             "a little longer: choose a shorter one";
    default:
      return "";
  }
}

}  // namespace

void FileDescriptorTraits::close(int fd) { ::close(fd); }

void throw_errno(int code, std::string_view operation, const fs::path& path) {
  const std::string hint = advice(code);
  std::string name = path.empty() ? "''" : path.string();
  if (const std::string suffix = temporary_suffix(); name.ends_with(suffix)) {
    // The message names the file to be replaced, which the user knows.
    name.resize(name.size() - suffix.size());
    operation = "write";
  }
  const std::string what =
      fmt::format("cannot {} {}: {}{}{}", operation, name, std::generic_category().message(code),
                  hint.empty() ? "" : "; ", hint);
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      throw NotFound(what);
    case EACCES:
    case EPERM:
      throw PolicyError(what);
    case ENAMETOOLONG:  // trying again does not help
      throw ConfigError(what);
    default:
      throw IoError(what);
  }
}

void throw_as_error(const fs::filesystem_error& error) {
  throw_errno(error.code().value(), "use", error.path1());
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

File File::open_to_append_unlinked(const fs::path& path) {
  return File(open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "open"), path);
}

File File::open_to_update(const fs::path& path) {
  return File(open_file(path, O_RDWR, "open"), path);
}

std::int64_t File::read_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t got = pass("file.read", wanted, [&](std::size_t some) {
      return ::pread(fd(), static_cast<char*>(to) + done, some, offset + done);
    });
    if (got < 0 && errno != EINTR) {
      throw_errno(errno, "read", path_);
    }
    if (got == 0) {
      break;
    }
    done += std::max<ssize_t>(got, 0);
  }
  restore_floating_point();  // before the data is parsed and used in computations
  return done;
}

void File::read_exactly_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  const std::int64_t got = read_at(offset, to, bytes);
  if (got != bytes) {
    throw DataError(
        fmt::format("{} ends at byte {}, but {} bytes were expected at byte {}: the file is "
                    "truncated; restore it from a copy",
                    path_.string(), offset + got, bytes, offset));
  }
}

void File::write(const void* from, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t put = pass("file.write", wanted, [&](std::size_t some) {
      return ::write(fd(), static_cast<const char*>(from) + done, some);
    });
    done += moved(put, path_);
  }
}

void File::write_at(std::int64_t offset, const void* from, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMaxTransferBytes));
    const ssize_t put = pass("file.write", wanted, [&](std::size_t some) {
      return ::pwrite(fd(), static_cast<const char*>(from) + done, some, offset + done);
    });
    done += moved(put, path_);
  }
}

void File::reserve(std::int64_t bytes) {
  // Unlike posix_fallocate, fallocate does not fall back to writing zeros if it can't reserve.
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

void File::sync() { sync_descriptor(fd(), path_); }

void File::will_need(std::int64_t offset, std::int64_t bytes) const {
  (void)::posix_fadvise(fd(), offset, bytes, POSIX_FADV_WILLNEED);
}

void File::wont_need(std::int64_t offset, std::int64_t bytes) const {
  (void)::posix_fadvise(fd(), offset, bytes, POSIX_FADV_DONTNEED);
}

void File::close() {
  // close() releases the descriptor even if it reports an error, so it must not be called again.
  const auto close_once = [this](std::size_t) { return ::close(handle_.release()); };
  if (handle_ && pass("file.close", 0, close_once) != 0 && errno != EINTR) {
    throw_errno(errno, "close", path_);
  }
}

std::string read_file(const fs::path& path, std::int64_t max_bytes) {
  return read_open_file(File::open_to_read(path), max_bytes);
}

void sync_directory(const fs::path& path) {
  const UniqueHandle<FileDescriptorTraits> folder(open_file(path, O_RDONLY | O_DIRECTORY, "open"));
  sync_descriptor(folder.get(), path);
}

namespace {

[[noreturn]] void refuse(const fs::path& path) {
  throw PolicyError(fmt::format("{} is a device, a FIFO or a folder; name a regular file instead",
                                path.string()));
}

bool is_special(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status);
}

// A rename replaces any file of that name. This refuses devices, and links that lead to a stream
// (/dev/stdout).
void refuse_stream(const fs::path& path) {
  std::error_code none;
  const fs::file_status target = fs::status(path, none);
  const bool is_link = fs::is_symlink(fs::symlink_status(path, none));
  const bool is_device = fs::is_character_file(target) || fs::is_block_file(target);
  if (is_device || (is_link && is_special(target))) {
    refuse(path);
  }
}

}  // namespace

void write_file_durably(const fs::path& path, std::string_view contents) {
  refuse_stream(path);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path temporary = path.string() + temporary_suffix();
  ::unlink(temporary.c_str());
  try {
    File file = File::create_new(temporary);
    file.write(contents.data(), static_cast<std::int64_t>(contents.size()));
    file.sync();
    file.close();
    const auto rename = [&](std::size_t) { return ::rename(temporary.c_str(), path.c_str()); };
    if (pass("file.rename", 0, rename) != 0) {
      throw_errno(errno, "replace", path);
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent);
}

void write_named_file(const fs::path& path, std::string_view contents) {
  std::error_code none;
  if (is_special(fs::status(path, none))) {
    refuse(path);
  }
  write_file_durably(path, contents);
}

void rename_durably(const fs::path& from, const fs::path& to) {
  const auto rename = [&](std::size_t) {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  };
  if (pass("file.rename", 0, rename) != 0) {
    // Some network file systems do not support the flag. There, a rename still never replaces a
    // folder that is not empty.
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
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) {
    return;
  }
  const fs::path parent = path.parent_path();
  make_directories(parent);
  if (path.filename().empty()) {
    return;  // the path ends in a slash
  }
  const int code = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  if (code != 0 && !fs::is_directory(path, ignored)) {
    throw_errno(code == EEXIST ? ENOTDIR : code, "create folder", path);
  }
  try {
    sync_directory(parent.empty() ? fs::path(".") : parent);
  } catch (const PolicyError&) {
    // A folder that can be written but not read can't be synced.
  }
}

bool is_read_only(const fs::path& path) {
  struct statvfs status {};
  for (fs::path at = fs::absolute(path); at != at.parent_path(); at = at.parent_path()) {
    if (::statvfs(at.c_str(), &status) == 0) {
      return (status.f_flag & ST_RDONLY) != 0;
    }
  }
  return ::statvfs("/", &status) == 0 && (status.f_flag & ST_RDONLY) != 0;
}

std::int64_t free_bytes(const fs::path& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw_errno(errno, "query the file system of", path);
  }
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

}  // namespace trireme
