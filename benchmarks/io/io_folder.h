// IoFolder is a new folder on the file system that is measured. All ranks see the same one, or, if
// the path leads to a disk of each node, those of a node do. It is removed at the end, or by a
// signal (scratch_folders.h), with all that the benchmark left there. Construct and destroy it on
// all ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "benchmarks/scratch_folders.h"
#include "mpi/session/mpi_session.h"
#include "src/base/error.h"

namespace trireme {

// Thrown on all ranks together.
struct DiskTooSmall : IoError {
  using IoError::IoError;
};

class IoFolder {
 public:
  // within: a folder that exists on all nodes. Throws NotFound if it does not. Collective.
  IoFolder(const std::filesystem::path& within, MpiSession& session);

  const std::filesystem::path& path() const { return path_; }
  // Whether all nodes see the same folder.
  bool shared() const { return shared_; }
  // Returns the type of the file system, such as "ext4", or a number in hexadecimal.
  const std::string& file_system() const { return file_system_; }
  bool in_memory() const { return file_system_ == "tmpfs" || file_system_ == "ramfs"; }

  // Throws DiskTooSmall if a disk has less room than the ranks that use it want to write together.
  // bytes: of each rank. Collective.
  void check_room(std::int64_t bytes, MpiSession& session) const;

 private:
  std::filesystem::path path_;
  std::string file_system_;
  ScratchFolders scratch_;  // holds the folder on the ranks that have made it
  bool shared_ = true;
};

}  // namespace trireme
