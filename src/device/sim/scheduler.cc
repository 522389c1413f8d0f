#include "src/device/sim/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace sim {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

BlockScheduler* only_scheduler = nullptr;  // never destroyed

void run_fiber() {
  Fiber::arrived();
  for (;;) {
    only_scheduler->run_threads();
  }
}

}  // namespace

BlockScheduler& scheduler() {
  if (only_scheduler == nullptr) {
    only_scheduler = new BlockScheduler;
  }
  return *only_scheduler;
}

BlockScheduler* existing_scheduler() { return only_scheduler; }

void BlockScheduler::set_shape(dim3 threads) {
  if (!threads_.empty() && threads.x == blockDim.x && threads.y == blockDim.y &&
      threads.z == blockDim.z) {
    return;
  }
  blockDim = threads;
  const std::size_t count = std::size_t{threads.x} * threads.y * threads.z;
  threads_.resize(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto number = static_cast<unsigned>(at);
    KernelThread& thread = threads_[at];
    thread.index = {number % threads.x, number / threads.x % threads.y,
                    number / (threads.x * threads.y)};
    thread.warp = static_cast<int>(at) / kWarpSize;
    thread.lane = static_cast<int>(at) % kWarpSize;
  }
  warps_.resize((count + kWarpSize - 1) / kWarpSize);
}

void BlockScheduler::run(const Kernel& kernel, std::uint64_t seed) {
  kernel_ = kernel;
  shuffles_ = seed != 0;
  random_ = Random(seed);
  const auto count = static_cast<int>(threads_.size());
  alive_ = count;
  at_barrier_ = 0;
  ended_ = 0;
  const auto warps = static_cast<int>(warps_.size());
  for (int at = 0; at < warps; ++at) {
    Warp& warp = warps_[static_cast<std::size_t>(at)];
    const int lanes = std::min(kWarpSize, count - at * kWarpSize);
    warp.alive = lanes == kWarpSize ? kAllLanes : (1u << lanes) - 1;
    warp.ready = warp.alive;
    warp.started = 0;
    warp.gathered = 0;
    warp.ascending = !shuffles_ || random_.next() % 2 == 0;
    warp.last = shuffles_ ? static_cast<int>(random_.below(kWarpSize)) : kWarpSize - 1;
  }
  ready_warps_ = warps == kWarpSize ? kAllLanes : (1u << warps) - 1;
  ascending_ = !shuffles_ || random_.next() % 2 == 0;
  warp_ = shuffles_ ? static_cast<int>(random_.below(warps_.size())) : 0;
  running_ = &home_;
  continue_with(choose_next(false));  // returns when all threads have ended
  current_ = nullptr;
}

void BlockScheduler::become(KernelThread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
}

// Returns the thread whose turn is next: one of the same warp, unless none of it is ready or
// leave_warp is set.
KernelThread& BlockScheduler::choose_next(bool leave_warp) {
  Warp* warp = &warps_[static_cast<std::size_t>(warp_)];
  if (warp->ready == 0 || leave_warp) {
    if (ready_warps_ == 0) {
      report_deadlock();
    }
    warp_ = next_turn(ready_warps_, warp_, ascending_);
    warp = &warps_[static_cast<std::size_t>(warp_)];
  }
  warp->last = next_turn(warp->ready, warp->last, warp->ascending);
  return threads_[static_cast<std::size_t>(warp_ * kWarpSize + warp->last)];
}

Fiber& BlockScheduler::take_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&run_fiber));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

// Lets `next` run. Returns when the fiber of the caller has its turn again.
void BlockScheduler::continue_with(KernelThread& next) {
  Warp& warp = warps_[static_cast<std::size_t>(next.warp)];
  const bool starts = (warp.started >> next.lane & 1u) == 0;
  Fiber& to = starts ? take_fiber() : *next.fiber;
  become(next);
  if (Fiber& from = *running_; &from != &to) {
    running_ = &to;
    from.switch_to(to);
  }
}

// Runs the current thread and then others that have not started, until one that waits on another
// fiber has its turn. Returns when this fiber is to start a thread again.
void BlockScheduler::run_threads() {
  for (;;) {
    KernelThread& thread = *current_;
    warps_[static_cast<std::size_t>(thread.warp)].started |= 1u << thread.lane;
    thread.fiber = running_;
    try {
      kernel_.body(kernel_.arguments.get());
    } catch (const std::exception& error) {
      die(error.what());
    } catch (...) {
      die("the kernel threw an exception");
    }
    finish_thread();
    if (alive_ == 0) {
      break;
    }
    KernelThread& next = choose_next(false);
    if ((warps_[static_cast<std::size_t>(next.warp)].started >> next.lane & 1u) != 0) {
      idle_.push_back(running_);
      continue_with(next);
      return;
    }
    become(next);
  }
  Fiber& from = *running_;
  idle_.push_back(&from);
  running_ = &home_;
  from.switch_to(home_);
}

void BlockScheduler::finish_thread() {
  KernelThread& thread = *current_;
  if (!thread.copies.empty()) {
    die("the thread ends with asynchronous copies under way");
  }
  if (!thread.products.empty()) {
    die("the thread ends with products of its warpgroup under way");
  }
  thread.copies.clear();
  Warp& warp = warps_[static_cast<std::size_t>(thread.warp)];
  stop_lane(warp, thread.lane);
  warp.alive &= ~(1u << thread.lane);
  --alive_;
  ++ended_;
  if (at_barrier_ > 0) {
    die("the thread ends while others of its block wait at a barrier");
  }
  if (warp.gathered != 0) {
    check_gatherings(warp);
  }
}

void BlockScheduler::stop_lane(Warp& warp, int at) {
  warp.ready &= ~(1u << at);
  if (warp.ready == 0) {
    ready_warps_ &= ~(1u << (&warp - warps_.data()));
  }
}

void BlockScheduler::make_ready(Warp& warp, unsigned lanes) {
  warp.ready |= lanes;
  ready_warps_ |= 1u << (&warp - warps_.data());
}

void BlockScheduler::wait_for_block() {
  if (ended_ > 0) {
    die("the thread waits at a barrier that a thread of its block has not reached before it ended");
  }
  ++at_barrier_;
  if (at_barrier_ < alive_) {
    stop_lane(warps_[static_cast<std::size_t>(current_->warp)], current_->lane);
    continue_with(choose_next(false));
    return;
  }
  release_block();
  continue_with(choose_next(shuffles_));
}

void BlockScheduler::release_block() {
  at_barrier_ = 0;
  for (Warp& warp : warps_) {
    make_ready(warp, warp.alive);
    if (shuffles_) {
      const std::uint64_t bits = random_.next();
      warp.ascending = bits % 2 == 0;
      warp.last = static_cast<int>(bits / 2 % kWarpSize);
    }
  }
  if (shuffles_) {
    const std::uint64_t bits = random_.next();
    ascending_ = bits % 2 == 0;
    warp_ = static_cast<int>(bits / 2 % warps_.size());
  }
}

void BlockScheduler::gather(unsigned mask, void* record, Collective operation) {
  KernelThread& self = *current_;
  Warp& warp = warps_[static_cast<std::size_t>(self.warp)];
  const unsigned bit = 1u << self.lane;
  if ((mask & bit) == 0) {
    die("the lane is not in the mask that it names");
  }
  Gathering& gathering = warp.gatherings[static_cast<std::size_t>(std::countr_zero(mask))];
  if (gathering.arrived == 0) {
    gathering = {mask, 0, operation};
  } else if (gathering.mask != mask || gathering.operation != operation) {
    die("lanes of one warp wait for each other in different operations or with different masks");
  }
  gathering.arrived |= bit;
  warp.gathered |= bit;
  warp.records[static_cast<std::size_t>(self.lane)] = record;
  if (gathering.arrived == (mask & warp.alive)) {
    finish_gathering(warp, gathering);
    if (shuffles_ && random_.next() % 16 == 0) {
      yield();
    }
  } else {
    stop_lane(warp, self.lane);
    continue_with(choose_next(false));
  }
}

void BlockScheduler::finish_gathering(Warp& warp, Gathering& gathering) {
  const unsigned lanes = gathering.arrived;
  if (lanes == kAllLanes) {
    gathering.operation(warp.records);
  } else {
    Records records;
    for (int at = 0; at < kWarpSize; ++at) {
      const auto place = static_cast<std::size_t>(at);
      records[place] = (lanes >> at & 1u) != 0 ? warp.records[place] : nullptr;
    }
    gathering.operation(records);
  }
  gathering.arrived = 0;
  warp.gathered &= ~lanes;
  make_ready(warp, lanes);
}

// Performs operations that were waiting only for lanes that have ended.
void BlockScheduler::check_gatherings(Warp& warp) {
  for (Gathering& gathering : warp.gatherings) {
    if (gathering.arrived != 0 && gathering.arrived == (gathering.mask & warp.alive)) {
      finish_gathering(warp, gathering);
    }
  }
}

void BlockScheduler::yield() { continue_with(choose_next(true)); }

void BlockScheduler::report_deadlock() {
  int gathered = 0;
  for (const Warp& warp : warps_) {
    gathered += std::popcount(warp.gathered);
  }
  char text[200];
  std::snprintf(
      text, sizeof text,
      "deadlock: %d threads wait at a barrier of the block and %d for lanes of their warp",
      at_barrier_, gathered);
  die(text);
}

bool BlockScheduler::overflows_at(const void* address) const {
  return std::any_of(fibers_.begin(), fibers_.end(),
                     [=](const auto& fiber) { return fiber->overflows_at(address); });
}

}  // namespace sim
