#include <cstdint>

#include "src/device/sim/context.h"

// sim_switch_context() saves the registers that a function must preserve. The floating-point
// control words are not among what kernels change.
asm(R"(
.text
.globl sim_switch_context
.hidden sim_switch_context
.type sim_switch_context, @function
sim_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sim_switch_context, .-sim_switch_context
)");

namespace sim {

Context make_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  auto** top = reinterpret_cast<void**>(stack + bytes);
  *--top = nullptr;  // a return address; keeps the alignment that functions expect
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) {
    *--top = nullptr;
  }
  return top;
}

}  // namespace sim
