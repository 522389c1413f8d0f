// StopSignals: signals that ask a launch to stop, as something to read instead of an interruption.
// Blocks them for the process from its making on; children are started without the blocks. Owned by
// the supervisor; one thread.
#pragma once

#include <vector>

#include "src/base/file.h"

namespace trireme {

class StopSignals {
 public:
  StopSignals();

  // Becomes readable with a signal, SIGCHLD included.
  int fd() const { return signals_.get(); }
  // Takes in what has come.
  void hear();
  // Whether any has ever come.
  bool asked() const { return asked_; }
  // Those that were heard and not taken yet.
  std::vector<int> take();

 private:
  UniqueHandle<FileDescriptorTraits> signals_;
  std::vector<int> heard_;
  bool asked_ = false;
};

}  // namespace trireme
