// IoFolder is a new folder on the file system that is measured. All ranks see the same one, or, if
// the path leads to a disk of each node, those of a node do. Its destructor removes it with all
// that the benchmark left there. Construct and destroy it on all ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "mpi/session/mpi_session.h"

namespace trireme {

class IoFolder {
 public:
  // within: a folder that exists on all nodes. Throws NotFound if it does not. Collective.
  IoFolder(const std::filesystem::path& within, MpiSession& session);
  ~IoFolder();
  IoFolder(const IoFolder&) = delete;
  IoFolder& operator=(const IoFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Whether all nodes see the same folder.
  bool shared() const { return shared_; }
  // Returns the type of the file system, such as "ext4", or a number in hexadecimal.
  const std::string& file_system() const { return file_system_; }
  bool in_memory() const { return file_system_ == "tmpfs" || file_system_ == "ramfs"; }

  // Throws IoError if a disk has less room than the ranks that use it want to write together.
  // bytes: of each rank. Collective.
  void check_room(std::int64_t bytes, MpiSession& session) const;

 private:
  std::filesystem::path path_;
  std::string file_system_;
  bool owner_ = false;  // whether this rank removes it
  bool shared_ = true;
};

}  // namespace trireme
