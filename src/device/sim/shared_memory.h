// The shared memory of the block that runs. Only the OS thread that runs kernels may use it.
#pragma once

#include <cstddef>

namespace sim {

// Provides dynamic shared memory for the blocks of a grid. Its last byte, rounded up to 128 bytes,
// lies before a page that must not be touched.
void use_dynamic_shared(std::size_t bytes);
// Fills the dynamic shared memory with NaN.
void clear_dynamic_shared();
bool is_behind_shared(const void* address);

// While a StaticShared exists, variables declared with __shared__ are what kernels make of them,
// and NaN before; programs with sanitizers leave them as the last grid left them. They are the
// thread's thread_local variables; the others among these get their values back at the end.
class StaticShared {
 public:
  // Returns whether variables hold NaN at first: not in programs with sanitizers.
  static bool is_filled();
  StaticShared();
  ~StaticShared();
  StaticShared(const StaticShared&) = delete;
  StaticShared& operator=(const StaticShared&) = delete;
};

}  // namespace sim
