// A Fiber is a stack of its own on which a function runs until it switches to another fiber. All
// fibers of a set stay on one OS thread. Sanitizers are told about each switch.
#pragma once

#include <cstddef>

#include "src/device/sim/context.h"

namespace sim {

class Fiber {
 public:
  // Constructs the fiber of the calling OS thread, on its own stack.
  Fiber();
  // Constructs a fiber that will call `entry`, which must not return. entry must call arrived()
  // first.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Continues `to`. Returns when another fiber switches back to this one, which must be the one
  // that runs.
  void switch_to(Fiber& to);
  // Tells the sanitizers that a new fiber runs.
  static void arrived();

  // Returns whether the address lies on the guard page below the stack.
  bool overflows_at(const void* address) const;

 private:
  Context context_ = nullptr;
  std::byte* memory_ = nullptr;  // the guard page, then the stack
  const void* stack_ = nullptr;  // its lowest byte
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // of the address sanitizer
  void* tsan_fiber_ = nullptr;
};

}  // namespace sim
