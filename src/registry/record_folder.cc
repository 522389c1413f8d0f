#include "src/registry/record_folder.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/regular_file.h"
#include "src/registry/registry_record.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using Descriptor = UniqueHandle<FileDescriptorTraits>;

constexpr mode_t kFolderMode = 0777;  // the umask decides
constexpr mode_t kFileMode = 0644;

// Throws what an open without following links has failed with. name: in the open folder.
[[noreturn]] void throw_open_error(int folder, const std::string& name, const fs::path& path) {
  const int error = errno;
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(status.st_mode)) {
      throw DataError(
          fmt::format("{} is a symbolic link; a registry follows none, since it could lead "
                      "elsewhere: remove it",
                      printable(path.string())));
    }
  }
  throw_errno(error, "open", path);
}

void sync(int fd, const fs::path& path) {
  if (::fsync(fd) != 0) {
    throw_errno(errno, "sync", path);
  }
}

Descriptor open_root(const fs::path& root) {
  Descriptor at(::open(root.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!at) {
    throw_errno(errno, "open", root);
  }
  return at;
}

// Returns none if it does not exist or is a file.
Descriptor open_part(int folder, const std::string& name, const fs::path& whole) {
  Descriptor part(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW));
  if (!part && errno != ENOENT) {
    const int error = errno;
    struct stat status {};
    if (error == ENOTDIR && ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode)) {
      return {};
    }
    errno = error;
    throw_open_error(folder, name, whole);
  }
  return part;
}

void write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      throw_errno(errno, "write", path);
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

}  // namespace

std::optional<RecordFolder> RecordFolder::open(const fs::path& root, const fs::path& path) {
  Descriptor at = open_root(root);
  fs::path whole = root;
  for (const fs::path& part : path) {
    whole /= part;
    at = open_part(at.get(), part.string(), whole);
    if (!at) {
      return std::nullopt;
    }
  }
  return RecordFolder(at.release(), whole);
}

RecordFolder RecordFolder::open_or_make(const fs::path& root, const fs::path& path) {
  Descriptor at = open_root(root);
  fs::path whole = root;
  for (const fs::path& part : path) {
    const fs::path above = whole;
    whole /= part;
    if (::mkdirat(at.get(), part.c_str(), kFolderMode) == 0) {
      sync(at.get(), above);
    } else if (errno != EEXIST) {
      throw_errno(errno, "create", whole);
    }
    at = open_part(at.get(), part.string(), whole);
    if (!at) {
      throw_errno(ENOTDIR, "open", whole);
    }
  }
  return RecordFolder(at.release(), whole);
}

std::vector<std::string> RecordFolder::names() const {
  // A descriptor of its own, since one is read from where the last reader stopped.
  Descriptor again(::openat(folder_.get(), ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), ::closedir);
  if (!entries) {
    throw_errno(errno, "list", path_);
  }
  (void)again.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
    errno = 0;
  }
  if (errno != 0) {
    throw_errno(errno, "list", path_);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string RecordFolder::read(const std::string& name) const {
  const fs::path path = path_ / name;
  const Descriptor file(
      ::openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    throw_open_error(folder_.get(), name, path);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    throw_errno(errno, "look at", path);
  }
  if (!S_ISREG(status.st_mode) || status.st_size > kMostRecordBytes) {
    throw DataError(fmt::format("{} is no file of at most {} bytes", printable(path.string()),
                                kMostRecordBytes));
  }
  return read_to_end(file.get(), status.st_size, path);
}

bool RecordFolder::add(const std::string& name, std::string_view text) const {
  const fs::path path = path_ / name;
  const std::string draft = fmt::format(".draft-{}-{}", host_name(), ::getpid());
  ::unlinkat(folder_.get(), draft.c_str(), 0);  // of a process of this number that was killed
  const Descriptor file(::openat(folder_.get(), draft.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file) {
    throw_errno(errno, "create", path_ / draft);
  }
  try {
    write_all(file.get(), text, path);
    sync(file.get(), path);
    // Unlike a rename, a link never replaces a file, on any file system that has links. Others
    // support the flag of the rename.
    bool is_taken = ::linkat(folder_.get(), draft.c_str(), folder_.get(), name.c_str(), 0) != 0;
    if (is_taken && errno != EEXIST) {
      is_taken = ::renameat2(folder_.get(), draft.c_str(), folder_.get(), name.c_str(),
                             RENAME_NOREPLACE) != 0;
    }
    if (is_taken && errno != EEXIST) {
      throw_errno(errno, "create", path);
    }
    ::unlinkat(folder_.get(), draft.c_str(), 0);
    sync(folder_.get(), path_);
    return !is_taken;
  } catch (...) {
    ::unlinkat(folder_.get(), draft.c_str(), 0);
    throw;
  }
}

void RecordFolder::remove(const std::string& name) const {
  ::unlinkat(folder_.get(), name.c_str(), 0);
}

}  // namespace trireme
