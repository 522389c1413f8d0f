// StopFlag: notes that the job is asked to stop (SIGTERM, SIGUSR1, SIGUSR2, SIGINT). The handlers
// set an atomic and nothing else; the training loop asks at every step boundary, where all ranks
// agree. One per process, alive as long as signals may arrive; a second SIGINT ends the process at
// once.
#pragma once

namespace trireme {

class StopFlag {
 public:
  // Installs the handlers; the destructor puts the old ones back.
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // The signal that came first, or 0.
  int signal() const;
};

}  // namespace trireme
