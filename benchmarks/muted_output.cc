#include "benchmarks/muted_output.h"

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace trireme {

MutedOutput::MutedOutput() {
  std::fflush(stdout);
  kept_ = ::dup(STDOUT_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

void MutedOutput::restore() {
  if (kept_ >= 0) {
    std::fflush(stdout);
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
    kept_ = -1;
  }
}

}  // namespace trireme
