// The node folder: what a launch keeps in a node's memory: progress pages, checkpoints. Made,
// locked and removed by the node's agent; it outlives the ranks.
//
//   /dev/shm/trireme-<uid>-<launch id>-<node>/
//       lock          held (flock) by the agent while it lives
//       progress/     src/base/progress_page.h
//       memory/       io/checkpoint/memory/node_memory.h
#pragma once

#include <filesystem>
#include <string>

#include "src/base/file.h"

namespace trireme {

std::filesystem::path node_folder(const std::string& launch, const std::string& node);

// Makes the folder, or takes over what an agent before has left. Removes the folders of launches
// that have neither an agent nor a rank on this machine any more.
class NodeFolder {
 public:
  NodeFolder(const std::string& launch, const std::string& node);
  // Keeps it.
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
