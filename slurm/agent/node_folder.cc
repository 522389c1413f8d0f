#include "slurm/agent/node_folder.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurm/process/proc.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

const fs::path kMemory = "/dev/shm";

std::string prefix() { return fmt::format("trireme-{}-", ::getuid()); }

UniqueHandle<FileDescriptorTraits> open_lock(const fs::path& folder, int flags) {
  return UniqueHandle<FileDescriptorTraits>(
      ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
}

// Its launch is the part of the name between the user's number and the node's name.
std::string launch_of(const std::string& name) {
  const std::string rest = name.substr(prefix().size());
  return rest.substr(0, rest.find('-'));
}

void remove_abandoned(const std::string& own_launch) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(kMemory, gone)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix()) || !fs::is_directory(entry.symlink_status()) ||
        launch_of(name) == own_launch) {
      continue;
    }
    const auto lock = open_lock(entry.path(), 0);
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
        processes_of_launch(launch_of(name), "").empty()) {
      fs::remove_all(entry.path(), gone);
    }
  }
}

}  // namespace

fs::path node_folder(const std::string& launch, const std::string& node) {
  return kMemory / fmt::format("{}{}-{}", prefix(), launch, node);
}

NodeFolder::NodeFolder(const std::string& launch, const std::string& node)
    : path_(node_folder(launch, node)) {
  remove_abandoned(launch);
  // Nobody else's business; and nothing that somebody else has put there.
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno(errno, "make", path_);
  }
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::getuid()) {
    throw PolicyError(fmt::format("{} is somebody else's: remove it", path_.string()));
  }
  lock_ = open_lock(path_, O_CREAT);
  if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw PolicyError(fmt::format("another agent is at work in {}", path_.string()));
  }
}

void NodeFolder::remove() {
  std::error_code gone;
  fs::remove_all(path_, gone);
}

}  // namespace trireme
