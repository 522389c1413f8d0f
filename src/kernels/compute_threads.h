// The threads that kernels run on, as the environment really gives them: limits of OpenMP and of
// the system, stacks, floating-point modes. Measured once at the start, on the thread that will run
// the kernels.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct ComputeThreads {
  int threads = 1;                    // that a parallel region gets
  std::vector<std::string> warnings;  // what differs from what was asked for
};

// Starts a team of `wanted` threads and looks at each of them. Fewer threads are used and warned
// of: results do not depend on their number. ConfigError where OMP_STACKSIZE is too small,
// DeviceError where the system refuses to start so many threads.
ComputeThreads measure_compute_threads(int wanted);

}  // namespace trireme
