#include "benchmarks/io/io_folder.h"

#include <array>
#include <cerrno>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct FileSystemType {
  std::int64_t magic;
  const char* name;
};
// These numbers are defined in linux/magic.h or, for file systems outside the kernel, in their own
// sources.
constexpr std::array kFileSystems = {
    FileSystemType{0xEF53, "ext4"},        FileSystemType{0x58465342, "xfs"},
    FileSystemType{0x9123683E, "btrfs"},   FileSystemType{0x01021994, "tmpfs"},
    FileSystemType{0x858458f6, "ramfs"},   FileSystemType{0x6969, "nfs"},
    FileSystemType{0x0BD00BD0, "lustre"},  FileSystemType{0x47504653, "gpfs"},
    FileSystemType{0x19830326, "beegfs"},  FileSystemType{0x00c36400, "ceph"},
    FileSystemType{0x794c7630, "overlay"}, FileSystemType{0x65735546, "fuse"},
    FileSystemType{0x2FC12FC1, "zfs"},     FileSystemType{0xF2F52010, "f2fs"}};

std::string type_of(const fs::path& path) {
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0) {
    throw_errno(errno, "examine", path);
  }
  const std::int64_t magic = static_cast<std::int64_t>(about.f_type) & 0xFFFFFFFF;
  for (const FileSystemType& known : kFileSystems) {
    if (known.magic == magic) {
      return known.name;
    }
  }
  return fmt::format("0x{:x}", magic);
}

}  // namespace

IoFolder::IoFolder(const fs::path& within, MpiSession& session) {
  Communicator& world = session.world();
  // From here on, a signal ends no rank before the folder is gone: mpirun would kill the one that
  // removes it.
  world.barrier().wait();
  path_ = run_on_root(world, [&] { return scratch_.make(within).string(); });
  if (world.rank() != 0) {
    scratch_.await(path_);
  }
  std::error_code none;
  const bool missing = !fs::is_directory(path_, none);
  world.barrier().wait();  // all have looked before a node without the folder makes its own
  std::int64_t failed = 0;
  if (missing && session.place().local_rank == 0) {
    if (::mkdir(path_.c_str(), 0700) == 0) {
      scratch_.adopt(path_);
    } else {
      failed = 1;
    }
  }
  shared_ = all_reduce_value(world, std::int64_t{missing ? 1 : 0}, ReduceOp::sum) == 0;
  if (all_reduce_value(world, failed, ReduceOp::sum) > 0) {
    throw NotFound(fmt::format("there is no folder {} on some nodes", within.string()));
  }
  file_system_ = type_of(path_);
}

void IoFolder::check_room(std::int64_t bytes, MpiSession& session) const {
  const int users = shared_ ? session.world().size() : session.place().local_size;
  std::int64_t room = free_bytes(path_);
  if (in_memory()) {
    room = std::min(room, available_memory().bytes);
  }
  const bool fits = bytes <= room / users;
  if (all_reduce_value(session.world(), std::int64_t{fits ? 0 : 1}, ReduceOp::sum) > 0) {
    throw DiskTooSmall(
        fmt::format("the disk of {} is too small: the files of {} have {}, and {} has {} free. "
                    "Make the working "
                    "set smaller, or name another disk with --dir",
                    path_.parent_path().string(), counted(users, "rank"),
                    format_bytes(bytes * users), session.place().host, format_bytes(room)));
  }
}

}  // namespace trireme
