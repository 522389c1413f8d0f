// OwnFolder: <node folder>/memory/own, as a rank of the node changes it (node_memory.h draws it).
// What only the node's leader may do is marked. Nothing is synced: memory does not survive its node
// anyway. Errors are thrown.
#pragma once

#include <filesystem>
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
  // Leader: removes all of this run and of earlier ones but these folders.
  void keep_only(const std::vector<std::filesystem::path>& folders) const;
  // Leader: removes them whatever run they are of.
  void keep_only_of_all(const std::vector<std::filesystem::path>& folders) const;
  // Leader: removes one; its name goes first, so that what a kill leaves of it is no step.
  void remove(const std::filesystem::path& folder) const;
  // Leader: removes what other nodes have copied here that is older than `oldest`. Of such a step
  // no node has its own shards any more. Agents remove what they replace; the copies of nodes that
  // the run has left nobody replaces.
  void remove_copies_before(const MemoryStepName& oldest) const;
  // Leader: adds the manifest to the attempt.
  void complete(const MemoryStepName& name, const Manifest& manifest) const;
  // Leader: the attempt gets the step's name; an older step of that name goes.
  void commit(const MemoryStepName& name) const;
  // Leader: asks the agent for a copy of the step's shards that are here, unless it is asked.
  void want_copy(const MemoryStepName& name) const;
  // Leader: makes an attempt of it again, however far it came. Does not throw.
  void undo(const MemoryStepName& name) const;

 private:
  std::filesystem::path path_;
  std::filesystem::path partner_;
  std::int64_t generation_;
  int rank_;
};

}  // namespace trireme
