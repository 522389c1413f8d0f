// MutedOutput keeps the process from writing to standard output while it exists. Only one object
// may exist at a time.
#pragma once

namespace trireme {

class MutedOutput {
 public:
  MutedOutput();
  ~MutedOutput() { restore(); }
  MutedOutput(const MutedOutput&) = delete;
  MutedOutput& operator=(const MutedOutput&) = delete;
  // Lets later output through.
  void restore();

 private:
  int kept_ = -1;
};

}  // namespace trireme
