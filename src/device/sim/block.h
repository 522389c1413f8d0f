// Runs grids of kernels, one block after another, on the calling OS thread. Only one OS thread of a
// process may do so. The threads of a block are fibers. A thread runs until it waits for others,
// and until then a warp keeps its turn: mistakes in the synchronization show in the results,
// because each warp runs as far ahead of the others as the barriers let it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/device/sim/launch.h"

namespace sim {

inline constexpr unsigned kMaxThreads = 1024;  // per block
inline constexpr std::size_t kDefaultSharedBytes = 48 << 10;
inline constexpr std::size_t kMaxSharedBytes = 227 << 10;

struct Grid {
  dim3 blocks;
  dim3 threads;  // per block
  std::size_t shared_bytes = 0;
};

// seed: see TRIREME_SIM_SEED.
void run_grid(const Grid& grid, const Kernel& kernel, std::uint64_t seed);

// RunningThread says where something went wrong, for messages.
struct RunningThread {
  bool in_kernel = false;
  uint3 block = {};
  uint3 thread = {};
};
RunningThread running_thread();
// Returns whether the address lies below the stack of a kernel's thread.
bool stack_overflows_at(const void* address);

}  // namespace sim
