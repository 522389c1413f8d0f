// OwnFolder: <node folder>/memory/own, as a rank of the node changes it (node_memory.h draws it).
// What only the node's leader may do is marked. Nothing is synced: memory does not survive its node
// anyway. Errors are thrown.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"

namespace trireme {

class OwnFolder {
 public:
  OwnFolder(const NodeMemory& node, std::int64_t generation, int rank);

  std::filesystem::path step(const MemoryStepName& name) const;
  std::filesystem::path attempt(const MemoryStepName& name) const;
  std::filesystem::path spare_folder() const;
  // This rank's, for a slot that no step needs.
  std::filesystem::path spare_file(std::size_t slot) const;
  // Every rank calls it; the first one makes the folder.
  void make(const std::filesystem::path& folder) const;

  bool holds(const MemoryStepName& name) const;
  bool is_copied(const MemoryStepName& name) const;

  // Leader: makes the folder itself.
  void open() const;
  // Leader: removes all but these folders.
  void keep_only(const std::vector<std::filesystem::path>& folders) const;
  // Leader: adds the manifest, and the wish for a copy, to the attempt.
  void complete(const MemoryStepName& name, const Manifest& manifest, bool wants_copy) const;
  // Leader: the attempt gets the step's name.
  void commit(const MemoryStepName& name) const;
  // Leader: makes an attempt of it again, however far it came. Does not throw.
  void undo(const MemoryStepName& name) const;

 private:
  std::filesystem::path path_;
  std::int64_t generation_;
  int rank_;
};

}  // namespace trireme
