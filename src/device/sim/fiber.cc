#include "src/device/sim/fiber.h"

#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

// The hooks of the sanitizers; null in programs built without them.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* stack,
                                                  std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_stack,
                                                   std::size_t* old_bytes);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace sim {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStackBytes = 128 << 10;
// Stacks start at different offsets of their pages. Otherwise the ends of all stacks would share a
// few sets of the first cache, and each switch would miss it.
constexpr std::size_t kStagger = 5 * 64;
constexpr std::size_t kPageBytes = 4096;

Fiber* left_fiber = nullptr;  // the one that switched last

}  // namespace

Fiber::Fiber() {
  if (__tsan_get_current_fiber != nullptr) {
    tsan_fiber_ = __tsan_get_current_fiber();
  }
}

Fiber::Fiber(void (*entry)()) : stack_bytes_(kStackBytes) {
  void* memory = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || ::mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    std::fputs("simulated device: no memory for the stacks of a block's threads\n", stderr);
    std::abort();
  }
  memory_ = static_cast<std::byte*>(memory);
  stack_ = memory_ + kGuardBytes;
  static std::size_t stagger = 0;
  stagger = (stagger + kStagger) % kPageBytes;
  context_ = make_context(memory_ + kGuardBytes, kStackBytes - stagger, entry);
  if (__tsan_create_fiber != nullptr) {
    tsan_fiber_ = __tsan_create_fiber(0);
  }
}

Fiber::~Fiber() {
  if (memory_ != nullptr) {
    if (__tsan_destroy_fiber != nullptr) {
      __tsan_destroy_fiber(tsan_fiber_);
    }
    ::munmap(memory_, kGuardBytes + kStackBytes);
  }
}

void Fiber::switch_to(Fiber& to) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    left_fiber = this;
    __sanitizer_start_switch_fiber(&fake_stack_, to.stack_, to.stack_bytes_);
  }
  if (__tsan_switch_to_fiber != nullptr) {
    __tsan_switch_to_fiber(to.tsan_fiber_, 0);
  }
  sim_switch_context(&context_, to.context_);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack_, &left_fiber->stack_, &left_fiber->stack_bytes_);
  }
}

void Fiber::arrived() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &left_fiber->stack_, &left_fiber->stack_bytes_);
  }
}

bool Fiber::overflows_at(const void* address) const {
  return memory_ != nullptr && address >= memory_ && address < memory_ + kGuardBytes;
}

}  // namespace sim
