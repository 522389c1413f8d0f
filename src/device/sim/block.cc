#include "src/device/sim/block.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include <pthread.h>

#include "src/device/sim/crash_report.h"
#include "src/device/sim/kernel_thread.h"
#include "src/device/sim/random.h"
#include "src/device/sim/scheduler.h"
#include "src/device/sim/shared_memory.h"

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim{};
dim3 gridDim{};

namespace sim {
namespace {

pthread_t kernel_thread;  // the OS thread that runs grids

// Returns a step that visits all blocks in an order that the seed decides.
std::uint64_t stride_through(std::uint64_t blocks, Random& random) {
  std::uint64_t stride = random.next() % blocks + 1;
  while (std::gcd(stride, blocks) != 1) {
    ++stride;
  }
  return stride;
}

}  // namespace

void run_grid(const Grid& grid, const Kernel& kernel, std::uint64_t seed) {
  kernel_thread = ::pthread_self();
  BlockScheduler& block = scheduler();
  block.set_shape(grid.threads);
  gridDim = grid.blocks;
  use_dynamic_shared(grid.shared_bytes);
  const StaticShared static_shared;
  const std::uint64_t blocks = std::uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  Random random(seed);
  const std::uint64_t stride = seed == 0 ? 1 : stride_through(blocks, random);
  std::uint64_t at = seed == 0 ? 0 : random.next() % blocks;
  for (std::uint64_t count = 0; count < blocks; ++count) {
    blockIdx = {static_cast<unsigned>(at % gridDim.x),
                static_cast<unsigned>(at / gridDim.x % gridDim.y),
                static_cast<unsigned>(at / (std::uint64_t{gridDim.x} * gridDim.y))};
    clear_dynamic_shared();
    block.run(kernel, seed == 0 ? 0 : random.next() | 1u);
    at = (at + stride) % blocks;
  }
}

RunningThread running_thread() {
  BlockScheduler* block = existing_scheduler();
  if (block == nullptr || !block->is_running() ||
      ::pthread_equal(kernel_thread, ::pthread_self()) == 0) {
    return {};
  }
  return {true, blockIdx, block->current().index};
}

bool stack_overflows_at(const void* address) {
  const BlockScheduler* block = existing_scheduler();
  return block != nullptr && block->overflows_at(address);
}

int lane() { return scheduler().current().lane; }

void block_barrier() { scheduler().wait_for_block(); }

void warp_collective(unsigned mask, void* record, Collective operation) {
  scheduler().gather(mask, record, operation);
}

void whole_warp_collective(void* record, Collective operation) {
  scheduler().gather(0xFFFFFFFFu, record, operation);
}

void yield_thread() { scheduler().yield(); }

void issue_copy(void* shared, const void* global, std::size_t bytes) {
  scheduler().current().copies.issue(shared, global, bytes);
}
void commit_copies() { scheduler().current().copies.commit(); }
void wait_copies(int pending) {
  scheduler().current().copies.wait(static_cast<std::size_t>(pending));
}

void die(const char* what) {
  report_no_abort();
  if (const RunningThread at = running_thread(); at.in_kernel) {
    std::fprintf(stderr, "simulated device: block (%u, %u, %u), thread (%u, %u, %u): %s\n",
                 at.block.x, at.block.y, at.block.z, at.thread.x, at.thread.y, at.thread.z, what);
  } else {
    std::fprintf(stderr, "simulated device: %s\n", what);
  }
  std::abort();
}

}  // namespace sim
