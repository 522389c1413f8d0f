// Measures the threads that kernels really get from the environment: limits of OpenMP and of the
// system, stack sizes, and floating-point modes. Called once at the start, on the thread that will
// run the kernels.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct ComputeThreads {
  int threads = 1;                    // number of threads that a parallel region gets
  std::vector<std::string> warnings;  // what differs from the request
};

// Starts a team of `wanted` threads and checks each of them. If there are fewer, adds a warning;
// results do not depend on their number. Throws ConfigError if OMP_STACKSIZE or the limit of stacks
// is too small, and ResourceError if the system refuses to start so many threads.
ComputeThreads measure_compute_threads(int wanted);

}  // namespace trireme
