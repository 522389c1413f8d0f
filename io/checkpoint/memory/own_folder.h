// OwnFolder makes a rank's changes to <node folder>/memory/own, which node_memory.h draws. Calls
// marked "leader" are for the node's leader only. Nothing is synced, since memory does not survive
// its node anyway. Errors are thrown.
#pragma once

#include <filesystem>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"
#include "src/keys/folder_key.h"

namespace trireme {

class OwnFolder {
 public:
  OwnFolder(const NodeMemory& node, std::int64_t generation, int rank);

  std::filesystem::path step(const MemoryStepName& name) const;
  std::filesystem::path attempt(const MemoryStepName& name) const;
  std::filesystem::path spare_folder() const;
  // Returns the file in which this rank keeps the pages of an unused slot.
  std::filesystem::path spare_file(std::size_t slot) const;
  // Every rank calls this; the first one creates the folder.
  void make(const std::filesystem::path& folder) const;

  bool holds(const MemoryStepName& name) const;
  bool is_copied(const MemoryStepName& name) const;

  // Leader: creates memory/own itself.
  void open() const;
  // Leader: removes everything of this run and of earlier ones, except for `folders`.
  void keep_only(const std::vector<std::filesystem::path>& folders) const;
  // Leader: removes everything of any run, except for `folders`.
  void keep_only_of_all(const std::vector<std::filesystem::path>& folders) const;
  // Leader: removes a folder. If it is a step, renames it first, so that a kill leaves no partial
  // step.
  void remove(const std::filesystem::path& folder) const;
  // Leader: removes partner copies on this node that are older than `oldest`; no node has its own
  // shards of such a step any more. Agents remove copies when they replace them, but no agent
  // replaces the copies of nodes that have left the run.
  void remove_copies_before(const MemoryStepName& oldest) const;
  // Leader: writes the manifest into the attempt, and the wrapped key if there is one.
  void complete(const MemoryStepName& name, const Manifest& manifest, const FolderKey* key) const;
  // Leader: renames the attempt to the step, after removing an older step of that name.
  void commit(const MemoryStepName& name) const;
  // Leader: asks the agent to copy the step's shards on this node, unless that was already done.
  void want_copy(const MemoryStepName& name) const;
  // Leader: turns the step back into an attempt, however far its commit got. Does not throw.
  void undo(const MemoryStepName& name) const;

 private:
  std::filesystem::path path_;
  std::filesystem::path partner_;
  std::int64_t generation_;
  int rank_;
};

}  // namespace trireme
