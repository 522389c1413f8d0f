#include "src/policy/root_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/regular_file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using Descriptor = UniqueHandle<FileDescriptorTraits>;

[[noreturn]] void refuse_file(const fs::path& path, const std::string& why) {
  throw PolicyError(
      fmt::format("{}: {}; nothing that it governs is allowed until root has "
                  "corrected this",
                  printable(path.string()), why));
}

struct stat status_of(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    throw_errno(errno, "look at", path);
  }
  return status;
}

void check_owner(const struct stat& status, const fs::path& path) {
  const bool is_folder = S_ISDIR(status.st_mode);
  if (status.st_uid != 0) {
    refuse_file(path, fmt::format("it belongs to the user {} and not to root, who could change the "
                                  "policy (chown root)",
                                  status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse_file(path, fmt::format("{} can write to {} (mode {:04o}; chmod go-w)",
                                  (status.st_mode & S_IWOTH) != 0 ? "everybody" : "a group",
                                  is_folder ? "this folder and replace the policy" : "it",
                                  status.st_mode & 07777U));
  }
}

// Opens one part of the path. Returns nothing if it does not exist.
Descriptor open_part(int folder, const fs::path& name, const fs::path& whole, bool is_folder) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (is_folder ? O_DIRECTORY : 0);
  const int fd = ::openat(folder, name.c_str(), flags);
  if (fd >= 0 || errno == ENOENT) {
    return Descriptor(fd);
  }
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(status.st_mode)) {
    refuse_file(whole, "it is a symbolic link");
  }
  if (errno == ENOTDIR) {
    refuse_file(whole, "it is not a folder");
  }
  throw_errno(errno, "open", whole);
}

}  // namespace

std::optional<std::string> read_root_file(const fs::path& path, std::int64_t most_bytes) {
  check(path.is_absolute(), "the path of a file of root is absolute");
  Descriptor at(::open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  fs::path whole = "/";
  const fs::path relative = path.relative_path();
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    check_owner(status_of(at.get(), whole), whole);
    whole /= *part;
    at = open_part(at.get(), *part, whole, std::next(part) != relative.end());
    if (at.get() < 0) {
      return std::nullopt;
    }
  }
  const struct stat status = status_of(at.get(), path);
  if (!S_ISREG(status.st_mode)) {
    refuse_file(path, "it is not a regular file");
  }
  check_owner(status, path);
  // The size of the status may be out of date, and is 0 for files of /proc.
  std::string text = read_to_end(at.get(), most_bytes + 1, path);
  if (std::ssize(text) > most_bytes) {
    refuse_file(path, fmt::format("it has more than {} bytes", most_bytes));
  }
  return text;
}

}  // namespace trireme
