#include "src/base/file_writers.h"

#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {

FileWriters writers_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return FileWriters::owner;
  }
  return (status.st_mode & S_IWOTH) != 0   ? FileWriters::everybody
         : (status.st_mode & S_IWGRP) != 0 ? FileWriters::group
                                           : FileWriters::owner;
}

void refuse_if_all_can_write(const std::filesystem::path& path, std::string_view why) {
  if (writers_of(path) == FileWriters::everybody) {
    throw PolicyError(fmt::format(
        "{} can be changed by every user of this host, who could {}: chmod o-w it, and check what "
        "is in it",
        printable(path.string()), why));
  }
}

}  // namespace trireme
