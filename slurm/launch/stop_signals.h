// StopSignals turns the signals that ask a launch to stop into something to read. It blocks them
// for the process from its construction on; children are started without the blocks. Owned by the
// supervisor; used by one thread.
#pragma once

#include <vector>

#include "src/base/file.h"

namespace trireme {

class StopSignals {
 public:
  StopSignals();

  // Becomes readable when a signal arrives, including SIGCHLD.
  int fd() const { return signals_.get(); }
  // Reads the signals that have arrived.
  void hear();
  // Returns whether any signal has ever asked for a stop.
  bool asked() const { return asked_; }
  // Returns the signals that were read since the last call.
  std::vector<int> take();

 private:
  UniqueHandle<FileDescriptorTraits> signals_;
  std::vector<int> heard_;
  bool asked_ = false;
};

}  // namespace trireme
