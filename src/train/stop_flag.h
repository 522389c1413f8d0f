// StopFlag records that the job was asked to stop (SIGTERM, SIGUSR1, SIGUSR2, SIGINT), or that a
// process has used up its processor time (SIGXCPU, `ulimit -t`). The handlers only set an atomic;
// the training loop reads it at every step boundary, where all ranks agree. There is one StopFlag
// per process, which must live as long as signals may arrive. A second SIGINT ends the process at
// once.
#pragma once

namespace trireme {

class StopFlag {
 public:
  // Installs the handlers; the destructor restores the old ones.
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // Returns the signal that came first, or 0.
  int signal() const;
};

}  // namespace trireme
