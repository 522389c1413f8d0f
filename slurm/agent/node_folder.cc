#include "slurm/agent/node_folder.h"

#include <cerrno>
#include <chrono>
#include <thread>

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

using Descriptor = UniqueHandle<FileDescriptorTraits>;

Descriptor open_lock(const fs::path& folder, int flags) {
  return Descriptor(
      ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
}

// Returns whether `lock` is still the file that the folder's lock name refers to.
bool is_lock_of(const fs::path& folder, const Descriptor& lock) {
  struct stat held {};
  struct stat named {};
  return ::fstat(lock.get(), &held) == 0 && ::lstat((folder / "lock").c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// Makes a folder that only this user can open. Throws PolicyError if something else has the name or
// another user owns it.
void make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno(errno, "make", path);
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 &&
      (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid())) {
    throw PolicyError(
        fmt::format("{} is not a folder, or belongs to another user: remove it", path.string()));
  }
}

// Extracts the launch id, which is between the user id and the node's name.
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
  // An agent of another launch may take this folder for an abandoned one and remove it before it is
  // locked. The previous agent of this launch may still hold the lock while it ends.
  constexpr int kTries = 60;
  constexpr std::chrono::milliseconds kBetween{50};
  remove_abandoned(launch);
  for (int i = 0; i < kTries; ++i) {
    make_private_folder(path_);
    lock_ = open_lock(path_, O_CREAT);
    if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && is_lock_of(path_, lock_)) {
      return;
    }
    std::this_thread::sleep_for(kBetween);
  }
  throw PolicyError(fmt::format("another agent of this launch still uses {}", path_.string()));
}

void NodeFolder::remove() {
  std::error_code gone;
  fs::remove_all(path_, gone);
}

}  // namespace trireme
