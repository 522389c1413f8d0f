// The scheduler of one simulated block: its threads, warps and fibers. Only the OS thread that runs
// kernels uses it.
#pragma once

#include <memory>
#include <vector>

#include "src/device/sim/async_copies.h"
#include "src/device/sim/block.h"
#include "src/device/sim/fiber.h"
#include "src/device/sim/random.h"
#include "src/device/sim/warp.h"
#include "src/device/sim/warpgroup_words.h"

namespace sim {

struct KernelThread {
  uint3 index = {};
  int warp = 0;
  int lane = 0;
  Fiber* fiber = nullptr;  // null until it starts
  AsyncCopies copies = {};
  WarpgroupProducts products = {};
};

// The block that runs. Its fibers stay for the next block; each runs one thread after another.
class BlockScheduler {
 public:
  void set_shape(dim3 threads);
  void run(const Kernel& kernel, std::uint64_t seed);
  // Runs threads on the calling fiber until it is to rest.
  void run_threads();

  KernelThread& current() { return *current_; }
  bool is_running() const { return current_ != nullptr; }
  bool overflows_at(const void* address) const;
  void wait_for_block();
  void gather(unsigned mask, void* record, Collective operation);
  void yield();

 private:
  void finish_thread();
  void release_block();
  void finish_gathering(Warp& warp, Gathering& gathering);
  void check_gatherings(Warp& warp);
  void stop_lane(Warp& warp, int lane);
  void make_ready(Warp& warp, unsigned lanes);
  KernelThread& choose_next(bool leave_warp);
  void continue_with(KernelThread& next);
  void become(KernelThread& thread);
  Fiber& take_fiber();
  [[noreturn]] void report_deadlock();

  std::vector<KernelThread> threads_;
  std::vector<Warp> warps_;
  unsigned ready_warps_ = 0;  // those with ready lanes
  int warp_ = 0;              // the one whose turn it is
  bool ascending_ = true;     // the order in which warps take turns
  int alive_ = 0;
  int at_barrier_ = 0;
  int ended_ = 0;
  bool shuffles_ = false;
  Random random_{0};
  Kernel kernel_;
  KernelThread* current_ = nullptr;
  Fiber* running_ = nullptr;
  Fiber home_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

// Returns the only scheduler, which the first call makes.
BlockScheduler& scheduler();
// Returns nullptr before that.
BlockScheduler* existing_scheduler();

}  // namespace sim
