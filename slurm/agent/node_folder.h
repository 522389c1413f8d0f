// The node folder holds what a launch keeps in a node's memory: progress pages and checkpoints. The
// node's agent makes, locks and removes it; the folder outlives the ranks.
//
//   /dev/shm/trireme-<uid>-<launch id>-<node>/
//       lock          locked (flock) by the agent while it lives
//       progress/     src/base/progress_page.h
//       memory/       io/checkpoint/memory/node_memory.h
#pragma once

#include <filesystem>
#include <string>

#include "src/base/file.h"

namespace trireme {

std::filesystem::path node_folder(const std::string& launch, const std::string& node);

// Makes the folder, or takes over the one that an earlier agent of this launch has left. Also
// removes the folders of launches that have no agent and no rank on this machine any more.
class NodeFolder {
 public:
  NodeFolder(const std::string& launch, const std::string& node);
  // The destructor does not remove the folder; see remove().
  ~NodeFolder() = default;
  NodeFolder(const NodeFolder&) = delete;
  NodeFolder& operator=(const NodeFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void remove();

 private:
  std::filesystem::path path_;
  UniqueHandle<FileDescriptorTraits> lock_;
};

}  // namespace trireme
