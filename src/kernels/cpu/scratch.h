// Working memory of the cpu kernels that reduce over blocks: one growing buffer for each calling
// thread, so that a step allocates nothing after the first. Contents are undefined.
#pragma once

#include <cstdint>

namespace trireme::cpu {

// At least `count` elements, aligned to 64 bytes; valid until this thread's next call. The team of
// a parallel region may use what its caller asked for.
double* scratch_doubles(std::int64_t count);
float* scratch_floats(std::int64_t count);

}  // namespace trireme::cpu
