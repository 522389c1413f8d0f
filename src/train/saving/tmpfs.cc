#include "src/train/saving/tmpfs.h"

#include <linux/magic.h>
#include <sys/vfs.h>

namespace trireme {

bool is_tmpfs(const std::filesystem::path& folder) {
  struct statfs status {};
  return ::statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

}  // namespace trireme
